"""Entry: `python -m benchmarks`."""

import sys

from benchmarks.commands import main

if __name__ == "__main__":
    sys.exit(main())
