"""linnet-model: brings models of other toolkits in.

    linnet-model import fairseq       checkpoints of fairseq
    linnet-model import marian        models of Marian and of Firefox Translations
    linnet-model import huggingface   folders of Hugging Face's MarianMT (OPUS-MT)
    linnet-model import multilingual  folders of Hugging Face's M2M-100, mBART-50 and NLLB-200
    linnet-model import summariser    folders of Hugging Face's BART, distilBART and PEGASUS

`linnet-model import NAME --help` lists the flags of each.
"""

from __future__ import annotations

import argparse
import importlib
import sys

from linnet_model.command_line import parser_for

# Imported on demand: each takes seconds.
IMPORTERS = {
    "fairseq": "linnet_model.importers.fairseq.import_fairseq",
    "marian": "linnet_model.importers.native_marian.import_native_marian",
    "huggingface": "linnet_model.importers.marian.import_marian",
    "multilingual": "linnet_model.importers.multilingual.import_multilingual",
    "summariser": "linnet_model.importers.summarisers.import_summariser",
}


def main(arguments: list[str] | None = None) -> int:
    parser = parser_for(__doc__)
    parser.add_argument("command", choices=["import"], metavar="import", help="the only command")
    parser.add_argument(
        "toolkit", choices=IMPORTERS, metavar="TOOLKIT", help=f"one of {', '.join(IMPORTERS)}"
    )
    parser.add_argument(
        "flags", nargs=argparse.REMAINDER, metavar="...", help="flags of the importer"
    )
    options = parser.parse_args(arguments)
    status: int = importlib.import_module(IMPORTERS[options.toolkit]).main(options.flags)
    return status


if __name__ == "__main__":
    sys.exit(main())
