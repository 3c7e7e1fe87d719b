"""MarianMT (OPUS-MT) of Hugging Face, read into bundles."""
