"""Geometry of a map and its Jacobian: domains, nearest points, stretch, folds, roughness, arc length, loops."""
