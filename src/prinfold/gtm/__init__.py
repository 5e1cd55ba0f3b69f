"""The generative topographic mapping (Svensén 1998).

Begin with ``latent_grid_model`` (``fit`` and the verbs of the family), ``recipe`` (what a fit is made of) and
``fitting`` (which follows it), then ``model`` (EM, thesis 3.1 to 3.2), ``e_step`` and ``posterior`` (3.3). Evidence,
weight posterior, partial fits and warnings are functions, each in a file of its name.
Noises are in ``noise``, trainers in ``trainers``; sequences, mixtures and mixed columns have folders of their own.
"""
