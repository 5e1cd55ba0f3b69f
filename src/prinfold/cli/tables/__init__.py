"""Files as people have them: read, told apart, sampled and written."""
