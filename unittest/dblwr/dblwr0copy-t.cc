/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

#include "dblwr/policy/dblwr0copy.h"

#include <gtest/gtest.h>

namespace spw {
namespace {

TEST(DoublewriteCopy, CopyOlderThanCheckpointIsStale) {
  EXPECT_TRUE(dblwr_copy_is_stale(999, 1000));
  EXPECT_FALSE(dblwr_copy_is_stale(1000, 1000));
  EXPECT_FALSE(dblwr_copy_is_stale(1001, 1000));
  /* Checkpoint not known yet. */
  EXPECT_FALSE(dblwr_copy_is_stale(0, 0));
}

TEST(DoublewriteCopy, CopyNewerThanRedoLogIsForeign) {
  EXPECT_FALSE(dblwr_copy_is_foreign(1000, 1000));
  EXPECT_TRUE(dblwr_copy_is_foreign(1001, 1000));
  EXPECT_FALSE(dblwr_copy_is_foreign(1001, 0));
}

}  // namespace
}  // namespace spw
