"""Numerical kernels on arrays that several families of methods share.

Compiled functions live in files named ``_*_jit.py``; each has a plain reference beside it, to which tests hold it.
"""
