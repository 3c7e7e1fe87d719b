"""`python -m linnet_model.random_bundle` is linnet-random-bundle."""

import sys

from linnet_model.export.random_bundle import main

if __name__ == "__main__":
    sys.exit(main())
