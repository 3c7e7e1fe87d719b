"""The encoder-decoder network: mixers, layers, sizes and presets. Uses no other package."""
