"""Translates files with Linnet and keeps everything but their text.

A format (`formats`) reads the bytes of a file into fragments (`fragment`), each the text of a slot
of the file, with the inline codes in it (`document`). `translate` sends the fragments to a server,
and the document writes the file with the answers in the slots. All other bytes stay as they are.
"""

from .document import File, FileError
from .formats import FORMATS, Format, Options, find, read
from .fragment import Code, Fragment
from .translate import Answer, Outcome, translate
from .version import __version__

__all__ = [
    "FORMATS",
    "Answer",
    "Code",
    "File",
    "FileError",
    "Format",
    "Fragment",
    "Options",
    "Outcome",
    "__version__",
    "find",
    "read",
    "translate",
]
