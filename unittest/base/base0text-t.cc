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

TEST(Text, BytesInLargestUnit) {
  constexpr uint64_t MIB = uint64_t{1} << 20;
  constexpr uint64_t GIB = uint64_t{1} << 30;
  constexpr uint64_t TIB = uint64_t{1} << 40;
  EXPECT_EQ(bytes_text(0), "0 bytes");
  EXPECT_EQ(bytes_text(1023), "1023 bytes");
  EXPECT_EQ(bytes_text(1024), "1.0 KiB");
  EXPECT_EQ(bytes_text(51 * MIB), "51.0 MiB");
  EXPECT_EQ(bytes_text(3 * GIB / 2), "1.5 GiB");
  /* TiB is the largest unit. */
  EXPECT_EQ(bytes_text(1024 * TIB), "1024.0 TiB");
}

TEST(Text, SecondsHaveOneDecimal) {
  EXPECT_EQ(seconds_text(0), "0.0 s");
  /* 85.648409 s, rounded */
  EXPECT_EQ(seconds_text(85'648'409), "85.6 s");
}

}  // namespace
}  // namespace spw
