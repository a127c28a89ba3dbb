"""Run `python -m decodescope` like the command `decodescope`."""

import sys

from decodescope import main

if __name__ == "__main__":
    sys.exit(main())
