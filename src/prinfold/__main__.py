"""The command line as ``python -m prinfold``."""

import sys

from prinfold.cli import main

if __name__ == "__main__":
    sys.exit(main())
