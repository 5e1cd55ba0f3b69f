"""Kernel densities with gradient and Hessian, rules for their bandwidth, and a classifier.

Read ``densities`` first, then ``kernel_sums`` for how sums are made fast and ``bandwidths`` for the rules; ``recipes``
makes a density of what a user asks for. ``ridges`` holds the methods of Ozertem and Erdogmus (2011) and their kin.
"""
