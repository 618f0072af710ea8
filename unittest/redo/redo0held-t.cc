/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

#include "redo/policy/redo0held.h"

#include <gtest/gtest.h>

namespace spw {
namespace {

constexpr int FILE_A = 3;
constexpr int FILE_B = 4;

TEST(RedoRange, PiecesOfACommitAreOneRange) {
  Redo_range range(16384);
  /* Full blocks, then the last block, which is written again when it fills. */
  EXPECT_EQ(range.decide(FILE_A, false, 4096, 1024, true), Redo_write::HOLD);
  EXPECT_EQ(range.add(FILE_A, false, 4096, 1024), 0u);
  EXPECT_EQ(range.decide(FILE_A, false, 5120, 512, true), Redo_write::HOLD);
  EXPECT_EQ(range.add(FILE_A, false, 5120, 512), 1024u);
  EXPECT_EQ(range.decide(FILE_A, false, 5120, 1536, true), Redo_write::HOLD);
  EXPECT_EQ(range.add(FILE_A, false, 5120, 1536), 1024u);
  EXPECT_EQ(range.begin(), 4096u);
  /* 5120 + 1536 - 4096 */
  EXPECT_EQ(range.size(), 2560u);
}

TEST(RedoRange, ShorterWriteKeepsTheEnd) {
  Redo_range range(16384);
  range.add(FILE_A, false, 4096, 8192);
  range.add(FILE_A, false, 4608, 512);
  EXPECT_EQ(range.size(), 8192u);
}

TEST(RedoRange, OrderOfWritesIsKept) {
  Redo_range range(16384);
  range.add(FILE_A, false, 8192, 1024);
  /* Before the range, behind a gap, another file, another encryption, one that
  must not wait. */
  EXPECT_EQ(range.decide(FILE_A, false, 7680, 512, true), Redo_write::RELEASE);
  EXPECT_EQ(range.decide(FILE_A, false, 9728, 512, true), Redo_write::RELEASE);
  EXPECT_EQ(range.decide(FILE_B, false, 9216, 512, true), Redo_write::RELEASE);
  EXPECT_EQ(range.decide(FILE_A, true, 9216, 512, true), Redo_write::RELEASE);
  EXPECT_EQ(range.decide(FILE_A, false, 9216, 512, false), Redo_write::RELEASE);
  range.clear();
  EXPECT_EQ(range.decide(FILE_A, false, 9216, 512, false), Redo_write::WRITE);
  EXPECT_EQ(range.decide(FILE_B, false, 7680, 512, true), Redo_write::HOLD);
}

TEST(RedoRange, MaxSize) {
  Redo_range range(16384);
  EXPECT_EQ(range.decide(FILE_A, false, 4096, 16896, true), Redo_write::WRITE);
  EXPECT_EQ(range.decide(FILE_A, false, 4096, 16384, true), Redo_write::HOLD);
  range.add(FILE_A, false, 4096, 8192);
  EXPECT_EQ(range.decide(FILE_A, false, 12288, 8192, true), Redo_write::HOLD);
  EXPECT_EQ(range.decide(FILE_A, false, 12288, 8704, true),
            Redo_write::RELEASE);
}

}  // namespace
}  // namespace spw
