"""Uses of a fitted map: landscapes, monitoring, classification by the nearest surface (Chang & Ghosh 2001).

Begin with ``base``. Landscapes are ``landscape_estimators``, with the maths in ``landscapes``; monitoring is
``monitor``, with the maths in ``monitor_statistics``; ``nearest_surface`` has estimator and maths in one. Landscapes
and monitoring are of no paper: each says what of it is ours.
"""
