"""How data are walked through: rows in memory and their blocks, threads, tables too large for memory and their readers."""
