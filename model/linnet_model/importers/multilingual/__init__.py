"""M2M-100, NLLB-200 and mBART-50 of Hugging Face, read into bundles."""
