"""Training of a GTM other than on all rows at once: incremental and online EM, streams (Svensén 1998, 6.6).

Begin with ``trainers`` (what a trainer must do), then ``blockwise``, on which ``incremental`` (Neal & Hinton 1998) and
``online`` (Cappé & Moulines 2009) stand.
"""
