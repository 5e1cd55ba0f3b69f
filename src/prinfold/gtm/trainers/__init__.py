"""How a GTM is trained other than on all rows at once: incremental and online EM, streams."""
