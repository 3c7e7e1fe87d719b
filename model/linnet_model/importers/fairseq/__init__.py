"""fairseq checkpoints, read into bundles and written from bundles."""
