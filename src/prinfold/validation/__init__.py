"""Checks of settings, tables, weights and classes, and the errors for those that cannot be used."""
