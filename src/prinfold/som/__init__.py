"""The self-organising map (Kohonen 1982).

Begin with ``estimator``, then ``model`` (winners, batch and online steps) and ``node_surface``, the batch update as a
surface (Svensén 1998, (2.23)).
"""
