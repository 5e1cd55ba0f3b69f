"""Principal trees: Mao, Yang, Wang, Goodison & Sun, SimplePPT (2015) and DDRTree's companion in KDD (2015).

``soft_tree`` is the method itself: soft assignments of rows to centres and a minimum spanning tree of these, in turn.
``noise`` chooses the columns to work in and the width of the kernel. ``shapes`` makes branches of the centres, and
paths, rings and loops where they are asked for. ``diagnosis`` says what speaks against a tree, ``significance`` which
branches could be chance. ``estimator`` holds the class.
"""
