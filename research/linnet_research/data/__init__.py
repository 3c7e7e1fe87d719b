"""Commands that make training texts."""
