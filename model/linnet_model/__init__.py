"""Linnet's models: layers, training, export to a bundle, scoring."""
