"""Training of a GTM other than on all rows at once: incremental and online EM, streams."""
