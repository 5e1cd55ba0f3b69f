"""Noises of a GTM: how rows scatter about the surface.

One file for each kind; ``protocol`` holds what they have in common. A user names a recipe (``recipes``), which knows
nothing of the data. It makes the noise that training works with once the surface and the spread of the data are known:

=============================  ====================================  ==========================
recipe                         noise that it makes                   file
=============================  ====================================  ==========================
``PlainNoise``, "isotropic"    ``IsotropicNoise``                    ``isotropic``
``DiagonalNoise``, "diagonal"  ``CellNoise``                         ``per_cell``
``StudentNoise``, "student"    ``StudentCells``                      ``student``
``VaryingNoise``, "varying"    ``SmoothNoise``                       ``varying``
``AlignedNoise``, "aligned"    ``FactorNoise`` with AlignedLoading   ``factor``
``LowRankNoise``               ``FactorNoise`` with SharedLoading    ``factor``
=============================  ====================================  ==========================

``with_gaps`` turns a noise into the one of the same parameters that takes missing cells.
"""
