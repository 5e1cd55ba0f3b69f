"""Principal curves: Hastie & Stuetzle, Tibshirani, Kégl et al., Delicado.

One file for each estimator, on top of ``base``; ``arc_curve`` is the curve itself.
"""
