"""The version of the package, which is that of the wheel."""

__version__ = "0.1.0"
