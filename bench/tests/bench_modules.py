"""Makes the modules of the runner and of the tools importable for the tests in this folder."""

import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(BENCH.parent / "tools"))
sys.path.insert(0, str(BENCH / "runner"))
