"""Training data: makes rows of other texts or of none, and changes rows at random."""
