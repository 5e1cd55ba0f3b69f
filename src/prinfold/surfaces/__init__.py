"""Surfaces by projection and regression in turn: Hastie & Stuetzle's, and the regularised manifold of Smola et al.

Read ``projected_regression`` first, which both share; ``smoothed_surface`` and ``quantization_error`` say how each is
regularised, ``principal_surface`` and ``regularized_manifold`` are the estimators.
"""
