"""`python -m linnet_model.train` is linnet-train."""

import sys

from linnet_model.train.command import main

if __name__ == "__main__":
    sys.exit(main())
