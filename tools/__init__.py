"""Makes spillway and the tools importable where this is not the folder of the script that runs: for the packages bench,
powercut and tests."""

import sys
from pathlib import Path

# The first entry, the checkout, where this package was found, stays ahead: tools/ has another package tests.
sys.path.insert(1, str(Path(__file__).resolve().parent))
