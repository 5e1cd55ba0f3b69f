"""Surfaces by projection and regression in turn: Hastie & Stuetzle's, and the regularised manifold of Smola et al.

Read ``projected_regression`` first, which both share; ``principal_surface_training`` and ``regularized_manifold_training`` say how each is
regularised, ``principal_surface`` and ``regularized_manifold`` are the estimators.
"""
