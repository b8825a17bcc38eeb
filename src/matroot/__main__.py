"""``python -m matroot``: the command line."""

import sys

from .experiments.command import main

sys.exit(main())
