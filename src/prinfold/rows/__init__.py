"""Rows and how they are walked through: blocks in memory, threads, tables too large for memory and their readers."""
