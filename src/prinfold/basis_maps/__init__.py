"""Maps that are linear in their weights, y(x) = φ(x) W: bases, elastic nets, Gaussian processes, default sizes.

Begin with ``basis_map``, then ``bases``. Used by the GTM and its relatives, by principal surfaces and by maps of nodes.
"""
