"""The placement systems of the paper's Table 1 behind one interface (Paper 3.3)."""
