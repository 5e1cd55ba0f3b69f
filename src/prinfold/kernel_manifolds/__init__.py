"""Unsupervised kernel regression (Meinicke et al. 2005) and kernel map manifolds (Gerber et al. 2009).

One objective (``objective``), two estimators (``ukr``, ``kmm``). Begin with either, then
``fitting`` and ``latent_descent``.
"""
