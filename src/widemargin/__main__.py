"""The command line as ``python -m widemargin``."""

import sys

from widemargin.cli import main

sys.exit(main())
