"""linnet-model fetch: the catalogue of models, their download, and what is unpacked of it."""
