"""Shared by the importers of Hugging Face's transformers: configuration, weights, bundle."""
