"""Checks of what comes in: settings, tables, weights and classes, and the words in which the rest is refused."""
