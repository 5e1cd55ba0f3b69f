"""What pictures show, as plain arrays: computed here, drawn by the module of the same name above."""
