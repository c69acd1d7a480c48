"""`python -m firl` is `firl`."""

import sys

from firl.cli import main

sys.exit(main())
