"""Noises of a GTM: how rows scatter about the surface.

One file for each kind; ``protocol`` holds what they have in common, ``recipes`` their names.
"""
