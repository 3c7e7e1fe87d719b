"""`python -m linnet_model.import_fairseq` is `linnet-model import fairseq`."""

import sys

from linnet_model.importers.fairseq.import_fairseq import main

if __name__ == "__main__":
    sys.exit(main())
