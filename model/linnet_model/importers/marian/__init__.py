"""Models of Marian (.npz) and of Firefox Translations (.bin), read into bundles."""
