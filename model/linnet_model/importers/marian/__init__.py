"""Marian checkpoints, read into bundles."""
