"""The self-organising map (Kohonen). Begin with ``estimator``, then ``model``."""
