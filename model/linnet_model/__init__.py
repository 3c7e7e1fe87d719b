"""Linnet's models: layers, training, export to a bundle, scoring."""

__version__ = "0.1.0"
