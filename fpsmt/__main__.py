"""``python -m fpsmt``: the command line."""

import sys

from fpsmt.cli import main

sys.exit(main())
