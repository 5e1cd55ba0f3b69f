"""Surfaces by projection and regression in turn: Hastie & Stuetzle's, and the regularised manifold of Smola et al.

``projected_regression`` alternates the two; ``principal_surface_training`` and ``regularized_manifold_training`` say
how each method smooths; ``principal_surface`` and ``regularized_manifold`` are the estimators, on top of ``base``.
"""
