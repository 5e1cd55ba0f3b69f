"""Principal curves: Hastie & Stuetzle, Tibshirani, Kégl et al., Delicado. One file per estimator, on top of ``base``."""
