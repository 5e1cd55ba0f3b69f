"""Surfaces by projection and regression in turn: Hastie & Stuetzle's, and the regularised manifold of Smola et al."""
