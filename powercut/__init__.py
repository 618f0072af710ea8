"""Power cuts; see README.md."""

import tools  # noqa: F401  it makes spillway importable
