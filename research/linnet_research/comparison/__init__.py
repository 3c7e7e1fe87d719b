"""linnet-compare: trains one recipe with several mixers and measures them side by side."""
