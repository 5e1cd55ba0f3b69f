"""Density ridges by subspace-constrained mean shift (Ozertem & Erdogmus 2011; McQueen), and clusters by modes.

Begin with ``estimator``, then ``mean_shift``; coordinates are those of ``graph`` (curves) or ``chart`` (surfaces).
"""
