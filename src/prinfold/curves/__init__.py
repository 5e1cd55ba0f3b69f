"""Principal curves: Hastie & Stuetzle, Tibshirani, Kégl et al., Delicado.

One file for each estimator, on top of ``base``: ``principal_curve`` (maths in ``hastie_stuetzle`` and ``smoothers``),
``probabilistic_curve``, ``polygonal_curve`` (maths in ``polygonal_curve_training``) and ``oriented_points_curve``.
``arc_curve`` is the curve itself, ``starts`` makes initial curves; ``diagnosis`` finds signs that rows have no one
curve.
"""
