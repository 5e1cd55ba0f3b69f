"""Mixtures and hierarchies of GTMs (thesis 6.3). Begin with ``estimator``, then ``model``."""
