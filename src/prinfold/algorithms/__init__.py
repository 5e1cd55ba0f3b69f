"""Pure state, start, step and objective of each method."""
