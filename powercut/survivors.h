/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file powercut/survivors.h
What of the writes that a power cut interrupts is on the medium afterwards. */

#ifndef powercut_survivors_h
#define powercut_survivors_h

#include <cstdint>
#include <random>
#include <vector>

namespace powercut {

/** A write that no flush had made durable when the power went. */
struct Lost_write {
  /** Where it begins, in bytes. */
  uint64_t offset;

  /** Bytes, 1 or more. */
  uint64_t length;

  /** The storage promised that this write is there as a whole or not at all. */
  bool whole;
};

/** How much of a cut's writes survives. A device may have destaged all, none,
or anything between, so each is met. */
enum class Survival { NOTHING, EVERYTHING, SOME };

/** @param[in]  offset        bytes
@param[in]  sector_bytes  1 or more
@return where the sector after the one that holds the offset begins */
constexpr uint64_t next_sector(uint64_t offset, uint64_t sector_bytes) {
  return (offset / sector_bytes + 1) * sector_bytes;
}

/** @param[in]  write         the write
@param[in]  sector_bytes  1 or more
@return how many sectors it writes to, also in part */
constexpr uint64_t sectors_of(const Lost_write &write, uint64_t sector_bytes) {
  return (write.offset + write.length - 1) / sector_bytes -
         write.offset / sector_bytes + 1;
}

/** Draws a number below n from a generator whose sequence is the same with
every standard library, as the distributions of <random> are not.
@param[in,out]  random  the generator
@param[in]      n       1 or more
@return 0 to n - 1; for the n that are used here the bias is below 1e-15 */
inline uint64_t draw(std::mt19937_64 &random, uint64_t n) {
  return random() % n;
}

/** @param[in,out]  random  the generator
@return nothing or everything of one cut in sixteen each, else some */
inline Survival draw_survival(std::mt19937_64 &random) {
  switch (draw(random, 16)) {
    case 0:
      return Survival::NOTHING;
    case 1:
      return Survival::EVERYTHING;
    default:
      return Survival::SOME;
  }
}

/** Which sectors of a write survive, where some of the cut's writes do: a third
of the writes does, a third does not, a third is torn: at one place, with either
side lost, or anywhere.
@param[in,out]  random     the generator
@param[in]      n_sectors  sectors of the write, 1 or more
@param[in]      whole      see Lost_write
@return for each sector whether it survives */
inline std::vector<bool> draw_sectors(std::mt19937_64 &random,
                                      uint64_t n_sectors, bool whole) {
  std::vector<bool> survives(n_sectors);
  const uint64_t fate = draw(random, whole ? 2 : 3);

  if (fate < 2) {
    survives.assign(n_sectors, fate == 1);
    return survives;
  }

  const uint64_t kind = draw(random, 3);
  const uint64_t place = draw(random, n_sectors);

  for (uint64_t i = 0; i < n_sectors; ++i) {
    switch (kind) {
      case 0:
        survives[i] = i < place;
        break;
      case 1:
        survives[i] = i >= place;
        break;
      default:
        survives[i] = draw(random, 2) == 1;
    }
  }
  return survives;
}

/** Decide what survives a cut. Applied in the order in which they were made,
the sectors that survive leave each sector as it was before, or as one of the
writes to it has made it: in whatever order the device has destaged them, of two
that both reached the medium the newer is there.
@param[in]  seed          the same seed decides the same way
@param[in]  writes        the writes, the oldest first
@param[in]  sector_bytes  what the medium writes as a whole, 1 or more
@return for each write, for each of its sectors, whether it survives */
inline std::vector<std::vector<bool>> settle(
    uint64_t seed, const std::vector<Lost_write> &writes,
    uint64_t sector_bytes) {
  std::mt19937_64 random(seed);
  const Survival survival = draw_survival(random);
  std::vector<std::vector<bool>> survives;

  survives.reserve(writes.size());
  for (const auto &write : writes) {
    const uint64_t n_sectors = sectors_of(write, sector_bytes);
    if (survival == Survival::SOME) {
      survives.push_back(draw_sectors(random, n_sectors, write.whole));
    } else {
      survives.emplace_back(n_sectors, survival == Survival::EVERYTHING);
    }
  }
  return survives;
}

}  // namespace powercut

#endif /* powercut_survivors_h */
