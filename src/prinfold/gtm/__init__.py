"""The generative topographic mapping (Svensén 1998).

Begin with ``estimator`` and ``fitting``, then ``model`` (EM, thesis 3.1 to 3.2), ``e_step`` and ``posterior`` (3.3).
Noises are in ``noise``, trainers in ``trainers``; sequences, mixtures and mixed columns have folders of their own.
"""
