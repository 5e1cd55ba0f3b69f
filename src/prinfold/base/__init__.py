"""The contract of every estimator.

Begin with ``principal_manifold``: its verbs need a map and its Jacobian only.
"""
