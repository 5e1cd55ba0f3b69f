"""Principal trees: Mao, Yang, Wang, Goodison & Sun, SimplePPT (2015).

``soft_tree`` is the method itself: soft assignments of rows to centres and a minimum spanning tree of these, in turn.
``noise`` chooses the components to work in and the width of the kernel. ``shapes`` makes branches of the centres, and
paths, rings and loops where they are asked for. ``diagnosis`` says what speaks against a tree, ``support`` how often
branches are found again. ``estimator`` holds the class; roots and pseudotime are in ``base/trajectories``.
"""
