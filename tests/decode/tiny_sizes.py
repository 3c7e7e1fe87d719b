"""Sizes of the tiny random bundles of these tests."""

VOCABULARY, SEED = 600, 3
