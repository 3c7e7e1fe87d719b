"""Importers: models of other toolkits become bundles."""
