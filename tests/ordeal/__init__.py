"""The ordeal: hostile tables, settings and files, drawn for every method of the register.

A case is plain JSON, so that a finding can be kept and tried again. ``worker`` runs it in a process of its own, where
neither a crash nor a hang ends the run; ``trial`` does what a user would do and names what is wrong with the outcome.
"""
