"""Importer of BART, distilBART and PEGASUS from folders of Hugging Face."""
