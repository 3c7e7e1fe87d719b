"""Export: a checkpoint becomes a bundle with its model card and shortlist."""
