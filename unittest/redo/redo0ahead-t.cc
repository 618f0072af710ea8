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

TEST(RedoAhead, PartBeginsBehindTheWriteAtABlock) {
  Redo_ahead ahead;
  const Redo_part part = ahead.due(7, 2048, 512);
  EXPECT_EQ(part.begin, 4096u);
  EXPECT_EQ(part.end, 4096u + REDO_AHEAD_BYTES);
}

TEST(RedoAhead, NoneUntilTheRedoHasReachedTheEnd) {
  Redo_ahead ahead;
  const uint64_t end = ahead.due(7, 2048, 512).end;
  EXPECT_TRUE(ahead.due(7, 2560, 512).empty());
  EXPECT_TRUE(ahead.due(7, end - 512, 512).empty());
  EXPECT_EQ(ahead.due(7, end, 512).begin, end + 4096);
}

TEST(RedoAhead, NeverWhereRedoHasBeenWritten) {
  Redo_ahead ahead;
  uint64_t offset = 2048;
  for (const uint64_t n_bytes : {512u, 400'384u, 512u, 1'048'576u, 1024u}) {
    const Redo_part part = ahead.due(7, offset, n_bytes);
    offset += n_bytes;
    EXPECT_TRUE(part.empty() || part.begin >= offset) << offset;
    /* The last block is written again. */
    offset -= 512;
  }
}

TEST(RedoAhead, EachFileFromItsFirstRedo) {
  Redo_ahead ahead;
  ahead.due(7, 2048, 512);
  EXPECT_EQ(ahead.due(8, 2048, 512).begin, 4096u);
}

TEST(RedoAhead, LargeWritesNeedNone) {
  Redo_ahead ahead;
  EXPECT_TRUE(ahead.due(7, 2048, REDO_AHEAD_BYTES).empty());
}

TEST(RedoAhead, GiveUpIsForOneFile) {
  Redo_ahead ahead;
  ahead.due(7, 2048, 512);
  ahead.give_up();
  EXPECT_TRUE(ahead.due(7, 100'000'000, 512).empty());
  EXPECT_FALSE(ahead.due(8, 2048, 512).empty());
}

}  // namespace
}  // namespace spw
