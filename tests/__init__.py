"""Tests that start servers outside of mysql-test-run."""

import tools  # noqa: F401  it makes spillway importable
