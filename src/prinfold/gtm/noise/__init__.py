"""How rows scatter about the surface of a GTM: one file for each kind of noise, ``protocol`` for what they have in common."""
