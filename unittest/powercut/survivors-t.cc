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

TEST(Survivors, SectorsOfAWriteDependOnItsOffset) {
  EXPECT_EQ(1u, sectors_of({0, 512, false}, SECTOR_BYTES));
  EXPECT_EQ(1u, sectors_of({511, 1, false}, SECTOR_BYTES));
  EXPECT_EQ(2u, sectors_of({511, 2, false}, SECTOR_BYTES));
  /* 16 KiB / 512 = 32; one more if the begin is within a sector. */
  EXPECT_EQ(32u, sectors_of({16384, 16384, false}, SECTOR_BYTES));
  EXPECT_EQ(33u, sectors_of({16385, 16384, false}, SECTOR_BYTES));
  EXPECT_EQ(512u, next_sector(0, SECTOR_BYTES));
  EXPECT_EQ(512u, next_sector(511, SECTOR_BYTES));
  EXPECT_EQ(1024u, next_sector(512, SECTOR_BYTES));
}

TEST(Survivors, SameSeedSameResult) {
  const std::vector<Lost_write> writes(20, Lost_write{4096, 16384, false});

  for (uint64_t seed = 0; seed < 50; ++seed) {
    EXPECT_EQ(resolve(seed, writes, SECTOR_BYTES),
              resolve(seed, writes, SECTOR_BYTES));
  }
}

/* The C++ standard defines the sequence of the generator: a seed in a report
gives the same result everywhere, and in later versions. */
TEST(Survivors, ResultOfASeedIsStable) {
  const std::vector<Lost_write> writes(3, Lost_write{0, 2048, false});
  std::string text;

  for (const auto &sectors : resolve(10, writes, SECTOR_BYTES)) {
    for (const bool survives : sectors) {
      text += survives ? '1' : '0';
    }
    text += ' ';
  }
  /* Three writes of 2048 / 512 = 4 sectors. */
  EXPECT_EQ("0000 1111 1001 ", text);
}

/* Outcomes of a cut: nothing or everything survives. Of a write: all of it,
none of it, only its begin, only its end, or scattered sectors. The rarest ones
are nothing and everything, 1000 / 16 = 62 of the cuts each. */
TEST(Survivors, EachOutcomeOccurs) {
  constexpr size_t SECTORS = 16384 / SECTOR_BYTES;
  const std::vector<Lost_write> writes(4, Lost_write{0, 16384, false});
  size_t nothing = 0, everything = 0, survived = 0, lost = 0, begin = 0,
         end = 0, scattered = 0;

  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const auto all = resolve(seed, writes, SECTOR_BYTES);
    size_t n_survive = 0;
    for (const auto &sectors : all) {
      ASSERT_EQ(SECTORS, sectors.size());
      const size_t n = count(sectors);
      n_survive += n;
      if (n == 0) {
        ++lost;
      } else if (n == sectors.size()) {
        ++survived;
      } else if (std::is_sorted(sectors.rbegin(), sectors.rend())) {
        ++begin;
      } else if (std::is_sorted(sectors.begin(), sectors.end())) {
        ++end;
      } else {
        ++scattered;
      }
    }
    nothing += n_survive == 0;
    everything += n_survive == writes.size() * SECTORS;
  }
  for (const size_t n :
       {nothing, everything, survived, lost, begin, end, scattered}) {
    EXPECT_GT(n, 20u);
  }
}

/* On a medium with sectors of 16 KiB a page is a sector. */
TEST(Survivors, TearsAtSectorsOfTheMedium) {
  constexpr uint64_t LARGE = 16384;
  const std::vector<Lost_write> writes{{LARGE, LARGE, false},
                                       {0, 4 * LARGE, false}};
  size_t torn = 0;

  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const auto all = resolve(seed, writes, LARGE);
    ASSERT_EQ(1u, all[0].size());
    ASSERT_EQ(4u, all[1].size());
    const size_t n = count(all[1]);
    torn += n > 0 && n < 4;
  }
  EXPECT_GT(torn, 100u);
}

TEST(Survivors, AtomicWritesAreNeverTorn) {
  const std::vector<Lost_write> writes{
      {0, 65536, true}, {65536, 16384, false}, {4096, 4096, true}};
  size_t torn = 0, survived = 0, lost = 0;

  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const auto all = resolve(seed, writes, SECTOR_BYTES);
    for (size_t i = 0; i < writes.size(); ++i) {
      const size_t n = count(all[i]);
      if (writes[i].is_atomic) {
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
