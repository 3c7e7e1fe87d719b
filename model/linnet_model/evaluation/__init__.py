"""Evaluation: scores of bundles and runs, and comparisons of mixers."""
