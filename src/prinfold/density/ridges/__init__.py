"""Density ridges by subspace-constrained mean shift (Ozertem & Erdogmus 2011; McQueen), and clusters by modes.

Read ``estimator`` first, then ``mean_shift``; coordinates are those of ``graph`` (curves) or ``chart`` (surfaces).
``signals`` denoises signals as principal curves, ``bands`` and ``significance`` say how sure a ridge is.
"""
