"""Training: datasets, objectives, loss, optimizer, checkpoints, and the command linnet-train."""
