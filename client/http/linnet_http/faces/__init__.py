"""One module for each HTTP API that programs speak."""
