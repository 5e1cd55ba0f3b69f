"""scikit-learn faces of the methods: settings, docs, tags; almost no maths."""

from prinfold.estimators.gtm import GTM

__all__ = ["GTM"]
