/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

#include "redo/policy/redo0ahead.h"

#include <gtest/gtest.h>

namespace spw {
namespace {

/** Enough syncs for each part. */
constexpr uint64_t SYNCS = REDO_AHEAD_MIN_SYNCS;

TEST(RedoAhead, PartBeginsBehindTheWriteAtABlock) {
  Redo_ahead ahead;
  const Redo_part part = ahead.due(7, 2048, 512, 0);
  EXPECT_EQ(part.begin, 4096u);
  EXPECT_EQ(part.end, 4096u + REDO_AHEAD_BYTES);
}

TEST(RedoAhead, NoneUntilTheRedoHasReachedTheEnd) {
  Redo_ahead ahead;
  const uint64_t end = ahead.due(7, 2048, 512, 0).end;
  EXPECT_TRUE(ahead.due(7, 2560, 512, SYNCS).empty());
  EXPECT_TRUE(ahead.due(7, end - 512, 512, SYNCS).empty());
  EXPECT_EQ(ahead.due(7, end, 512, SYNCS).begin, end + 4096);
}

TEST(RedoAhead, NeverWhereRedoHasBeenWritten) {
  /* InnoDB writes at most 16 KiB at once. */
  Redo_ahead ahead;
  uint64_t offset = 2048;
  uint64_t n_parts = 0;
  for (uint64_t n_syncs = 0; n_syncs < 1000; ++n_syncs) {
    const uint64_t n_bytes = 512 * (1 + n_syncs % 32);
    const Redo_part part = ahead.due(7, offset, n_bytes, n_syncs);
    offset += n_bytes;
    EXPECT_TRUE(part.empty() || part.begin >= offset) << offset;
    n_parts += part.empty() ? 0 : 1;
    /* The last block is written again. */
    offset -= 512;
  }
  /* 32,000 blocks are 16 MB. */
  EXPECT_GE(n_parts, 10u);
}

TEST(RedoAhead, NotWithFewSyncs) {
  Redo_ahead ahead;
  uint64_t end = ahead.due(7, 2048, 512, 100).end;
  EXPECT_TRUE(ahead.due(7, end, 512, 100 + SYNCS - 1).empty());
  end += 4096 + REDO_AHEAD_BYTES;
  EXPECT_FALSE(ahead.due(7, end, 512, 100 + SYNCS - 1 + SYNCS).empty());
}

TEST(RedoAhead, EachFileFromItsFirstRedo) {
  Redo_ahead ahead;
  ahead.due(7, 2048, 512, 0);
  EXPECT_EQ(ahead.due(8, 2048, 512, SYNCS).begin, 4096u);
}

TEST(RedoAhead, GiveUpIsForOneFile) {
  Redo_ahead ahead;
  ahead.due(7, 2048, 512, 0);
  ahead.give_up();
  EXPECT_TRUE(ahead.due(7, 100'000'000, 512, SYNCS).empty());
  EXPECT_FALSE(ahead.due(8, 2048, 512, SYNCS).empty());
}

}  // namespace
}  // namespace spw
