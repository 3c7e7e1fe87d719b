"""Experiments with Linnet's models: comparisons, tasks, training texts. No part of the product."""
