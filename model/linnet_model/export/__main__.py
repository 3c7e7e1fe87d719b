"""`python -m linnet_model.export` is linnet-export."""

import sys

from linnet_model.export.command import main

if __name__ == "__main__":
    sys.exit(main())
