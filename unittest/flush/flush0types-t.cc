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

TEST(FlushTypes, EachReasonHasWordsOfItsOwn) {
  std::set<std::string> texts;
  for (int i = 0; i < static_cast<int>(Flush_reason::N); ++i) {
    texts.insert(flush_reason_text(static_cast<Flush_reason>(i)));
  }
  EXPECT_EQ(texts.size(), static_cast<size_t>(Flush_reason::N));
}

TEST(FlushTypes, WhoAskedIsToldApart) {
  EXPECT_TRUE(flush_is_cleaners(Flush_reason::DIRTY));
  EXPECT_TRUE(flush_is_cleaners(Flush_reason::UTIL));
  EXPECT_TRUE(flush_is_cleaners(Flush_reason::AGE));
  EXPECT_TRUE(flush_is_cleaners(Flush_reason::LIMIT));
  EXPECT_TRUE(flush_is_cleaners(Flush_reason::DEVICE));
  EXPECT_FALSE(flush_is_cleaners(Flush_reason::OFF));
  EXPECT_FALSE(flush_is_cleaners(Flush_reason::BELOW));
  EXPECT_FALSE(flush_is_cleaners(Flush_reason::NATIVE));
  EXPECT_FALSE(flush_is_cleaners(Flush_reason::PURGE));
}

}  // namespace
}  // namespace spw
