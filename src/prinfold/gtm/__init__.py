"""The generative topographic mapping (Svensén 1998).

Begin with ``estimator`` and ``fitting``, then ``model`` (EM, thesis 3.1 to 3.2), ``e_step`` and ``posterior`` (thesis 3.3);
noises are in ``noise``, trainers in ``trainers``; sequences, mixtures and mixed columns have folders of their own.
"""
