"""What the tiny random bundles of these tests are made from."""

VOCABULARY, SEED = 600, 3
