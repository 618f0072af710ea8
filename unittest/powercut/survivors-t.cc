/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file unittest/powercut/survivors-t.cc
Tests of what survives a power cut. */

#include "powercut/survivors.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

namespace powercut {
namespace {

constexpr uint64_t SECTOR_BYTES = 512;

size_t count(const std::vector<bool> &sectors) {
  return std::count(sectors.begin(), sectors.end(), true);
}

TEST(Settle, CountsSectorsByWhereAWriteIs) {
  EXPECT_EQ(1u, sectors_of({0, 512, false}, SECTOR_BYTES));
  EXPECT_EQ(1u, sectors_of({511, 1, false}, SECTOR_BYTES));
  EXPECT_EQ(2u, sectors_of({511, 2, false}, SECTOR_BYTES));
  EXPECT_EQ(32u, sectors_of({16384, 16384, false}, SECTOR_BYTES));
  EXPECT_EQ(33u, sectors_of({16385, 16384, false}, SECTOR_BYTES));
  EXPECT_EQ(512u, next_sector(0, SECTOR_BYTES));
  EXPECT_EQ(512u, next_sector(511, SECTOR_BYTES));
  EXPECT_EQ(1024u, next_sector(512, SECTOR_BYTES));
}

TEST(Settle, SameSeedSameOutcome) {
  const std::vector<Lost_write> writes(20, Lost_write{4096, 16384, false});

  for (uint64_t seed = 0; seed < 50; ++seed) {
    EXPECT_EQ(settle(seed, writes, SECTOR_BYTES),
              settle(seed, writes, SECTOR_BYTES));
  }
}

/* The sequence of the generator is laid down by the C++ standard: a seed that
somebody reports means the same everywhere, and shall go on to. */
TEST(Settle, SeedsKeepTheirMeaning) {
  const std::vector<Lost_write> writes(3, Lost_write{0, 2048, false});
  std::string text;

  for (const auto &sectors : settle(10, writes, SECTOR_BYTES)) {
    for (const bool survives : sectors) {
      text += survives ? '1' : '0';
    }
    text += ' ';
  }
  EXPECT_EQ("0000 1111 1001 ", text);
}

/* Each fate is met: nothing and everything of a cut; a write as a whole, not at
all, its begin only, its end only, a piece in the middle missing. */
TEST(Settle, MeetsEachFate) {
  const std::vector<Lost_write> writes(4, Lost_write{0, 16384, false});
  size_t nothing = 0, everything = 0, whole = 0, none = 0, begin = 0, end = 0,
         scattered = 0;

  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const auto all = settle(seed, writes, SECTOR_BYTES);
    size_t n_survive = 0;
    for (const auto &sectors : all) {
      ASSERT_EQ(32u, sectors.size());
      const size_t n = count(sectors);
      n_survive += n;
      if (n == 0) {
        ++none;
      } else if (n == sectors.size()) {
        ++whole;
      } else if (std::is_sorted(sectors.rbegin(), sectors.rend())) {
        ++begin;
      } else if (std::is_sorted(sectors.begin(), sectors.end())) {
        ++end;
      } else {
        ++scattered;
      }
    }
    nothing += n_survive == 0;
    everything += n_survive == writes.size() * 32;
  }
  for (const size_t fate :
       {nothing, everything, whole, none, begin, end, scattered}) {
    EXPECT_GT(fate, 20u);
  }
}

/* On a medium with sectors of 16 KiB a page is a sector. */
TEST(Settle, TearsAtTheSectorOfTheMedium) {
  constexpr uint64_t LARGE = 16384;
  const std::vector<Lost_write> writes{{LARGE, LARGE, false},
                                       {0, 4 * LARGE, false}};
  size_t torn = 0;

  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const auto all = settle(seed, writes, LARGE);
    ASSERT_EQ(1u, all[0].size());
    ASSERT_EQ(4u, all[1].size());
    const size_t n = count(all[1]);
    torn += n > 0 && n < 4;
  }
  EXPECT_GT(torn, 100u);
}

TEST(Settle, WholeWritesAreNeverTorn) {
  const std::vector<Lost_write> writes{
      {0, 65536, true}, {65536, 16384, false}, {4096, 4096, true}};
  size_t torn = 0, survived = 0, lost = 0;

  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const auto all = settle(seed, writes, SECTOR_BYTES);
    for (size_t i = 0; i < writes.size(); ++i) {
      const size_t n = count(all[i]);
      if (writes[i].whole) {
        EXPECT_TRUE(n == 0 || n == all[i].size());
        survived += n > 0;
        lost += n == 0;
      } else {
        torn += n > 0 && n < all[i].size();
      }
    }
  }
  EXPECT_GT(torn, 100u);
  EXPECT_GT(survived, 100u);
  EXPECT_GT(lost, 100u);
}

}  // namespace
}  // namespace powercut
