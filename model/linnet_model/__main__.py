"""linnet-model: brings models of other toolkits in, and looks after bundles.

    linnet-model fetch                downloads a model, imports and checks it
    linnet-model import fairseq       checkpoints of fairseq
    linnet-model import marian        models of Marian and of Firefox Translations
    linnet-model import huggingface   folders of Hugging Face's MarianMT (OPUS-MT)
    linnet-model import multilingual  folders of Hugging Face's M2M-100, mBART-50 and NLLB-200
    linnet-model import summariser    folders of Hugging Face's BART, distilBART and PEGASUS
    linnet-model info                 says what a bundle or a model of these toolkits is
    linnet-model check                loads a bundle and answers its golden examples
    linnet-model convert              writes a bundle with weights of another type

`linnet-model import NAME --help` and `linnet-model info --help` list the flags of each.
"""

from __future__ import annotations

import argparse
import importlib
import sys

from linnet_model.torch_version import check_torch

# Imported on demand: each takes seconds.
IMPORTERS = {
    "fairseq": "linnet_model.importers.fairseq.import_fairseq",
    "marian": "linnet_model.importers.marian.import_marian",
    "huggingface": "linnet_model.importers.huggingface_marian.import_huggingface_marian",
    "multilingual": "linnet_model.importers.multilingual.import_multilingual",
    "summariser": "linnet_model.importers.summarisers.import_summariser",
}
COMMANDS = {
    "fetch": "linnet_model.commands.fetch",
    "info": "linnet_model.commands.info",
    "check": "linnet_model.commands.check",
    "convert": "linnet_model.commands.convert",
}


def main(arguments: list[str] | None = None) -> int:
    reason = check_torch()
    if reason is not None:
        print(f"linnet-model: {reason}", file=sys.stderr)
        return 1
    from linnet_model.command_line import parser_for  # needs torch

    parser = parser_for(__doc__)
    parser.add_argument(
        "command",
        choices=["import", *COMMANDS],
        metavar="COMMAND",
        help=f"import TOOLKIT, or one of {', '.join(COMMANDS)}",
    )
    parser.add_argument(
        "flags",
        nargs=argparse.REMAINDER,
        metavar="...",
        help=f"its flags; of import first the toolkit: one of {', '.join(IMPORTERS)}",
    )
    options = parser.parse_args(arguments)
    modules, name, flags = COMMANDS, options.command, options.flags
    if name == "import":
        modules, name, flags = IMPORTERS, (flags or [""])[0], flags[1:]
        if name not in modules:
            parser.error(f"import {name or '(nothing)'}: choose from {', '.join(modules)}")
    status: int = importlib.import_module(modules[name]).main(flags)
    return status


if __name__ == "__main__":
    sys.exit(main())
