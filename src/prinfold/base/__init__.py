"""The contract of every estimator: :class:`~prinfold.base.principal_manifold.PrincipalManifold` and what it stands on."""
