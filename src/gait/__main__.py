"""`python -m gait` is the command `gait`."""

import sys

from gait.cli import main

sys.exit(main())
