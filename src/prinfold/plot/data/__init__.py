"""Arrays that pictures are drawn from: computed here, drawn by the module of the same name in the folder above."""
