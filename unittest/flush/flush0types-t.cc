/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

#include "flush/policy/flush0types.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace spw {
namespace {

TEST(FlushTypes, EachTriggerAndLimitHasItsOwnText) {
  std::set<std::string> texts;
  for (int i = 0; i < static_cast<int>(Flush_trigger::N); ++i) {
    texts.insert(flush_trigger_text(static_cast<Flush_trigger>(i)));
  }
  for (int i = 0; i < static_cast<int>(Flush_limit::N); ++i) {
    texts.insert(flush_limit_text(static_cast<Flush_limit>(i)));
  }
  EXPECT_EQ(texts.size(), static_cast<size_t>(Flush_trigger::N) +
                              static_cast<size_t>(Flush_limit::N));
}

TEST(FlushTypes, RulesOfAheadFlushingAreAheadTriggers) {
  EXPECT_TRUE(is_ahead_trigger(Flush_trigger::DIRTY));
  EXPECT_TRUE(is_ahead_trigger(Flush_trigger::UTIL));
  EXPECT_TRUE(is_ahead_trigger(Flush_trigger::PURGE));
  EXPECT_TRUE(is_ahead_trigger(Flush_trigger::EARLY));
  EXPECT_TRUE(is_ahead_trigger(Flush_trigger::AGE));
  EXPECT_FALSE(is_ahead_trigger(Flush_trigger::OFF));
  EXPECT_FALSE(is_ahead_trigger(Flush_trigger::NONE));
  EXPECT_FALSE(is_ahead_trigger(Flush_trigger::ADAPTIVE));
}

}  // namespace
}  // namespace spw
