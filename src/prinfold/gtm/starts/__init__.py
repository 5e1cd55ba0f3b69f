"""Starts of a GTM (thesis 3.2.1): first parameters by name, and how starts are compared.

Begin with ``first_parameters``.
"""
