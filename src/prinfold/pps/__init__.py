"""Probabilistic principal surfaces (Chang & Ghosh 2001): the GTM with noise along or across the surface.

Begin with ``estimator``, then ``model`` and ``oriented_model`` (equation 17).
"""
