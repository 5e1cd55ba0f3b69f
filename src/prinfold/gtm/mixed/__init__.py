"""GTMs of tables whose columns are numbers, levels and counts (thesis 6.8).

Begin with ``estimator``, then ``column_noise``.
"""
