/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

#include "base/base0text.h"

#include <gtest/gtest.h>

namespace spw {
namespace {

TEST(Text, BytesHaveTheLargestUnitThatFits) {
  EXPECT_EQ(bytes_text(0), "0 bytes");
  EXPECT_EQ(bytes_text(1023), "1023 bytes");
  EXPECT_EQ(bytes_text(1024), "1.0 KiB");
  /* 51 * 2^20 */
  EXPECT_EQ(bytes_text(53477376), "51.0 MiB");
  /* 1.5 * 2^30 */
  EXPECT_EQ(bytes_text(1610612736), "1.5 GiB");
  /* 2^50 = 1024 TiB */
  EXPECT_EQ(bytes_text(1125899906842624), "1024.0 TiB");
}

TEST(Text, SecondsHaveOneDecimal) {
  EXPECT_EQ(seconds_text(0), "0.0 s");
  EXPECT_EQ(seconds_text(85'648'409), "85.6 s");
}

}  // namespace
}  // namespace spw
