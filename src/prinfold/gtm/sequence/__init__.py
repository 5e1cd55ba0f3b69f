"""The GTM through time (thesis 7.4): nodes are the states of a hidden Markov chain.

Begin with ``estimator``, then ``model``.
"""
