"""Kernel densities: their sums and derivatives, bandwidths, and the classifier. Begin with ``densities``."""
