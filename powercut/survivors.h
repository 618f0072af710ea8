/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file powercut/survivors.h
Decides which parts of the writes that a power cut interrupts are on the medium
afterwards. */

#ifndef powercut_survivors_h
#define powercut_survivors_h

#include <cstdint>
#include <random>
#include <vector>

namespace powercut {

/** A write that was not durable when the power went. */
struct Lost_write {
  /** The begin of the write in the file, in bytes. */
  uint64_t offset;

  /** In bytes, 1 or more. */
  uint64_t length;

  /** The write is atomic: it survives as a whole or not at all. */
  bool is_atomic;
};

/** How much of a cut's writes survives: a device may have destaged nothing,
everything, or some of it. */
enum class Survival { NOTHING, EVERYTHING, SOME };

/** @param[in]  offset        bytes
@param[in]  sector_bytes  1 or more
@return the begin of the sector after the one that contains the offset */
constexpr uint64_t next_sector(uint64_t offset, uint64_t sector_bytes) {
  return (offset / sector_bytes + 1) * sector_bytes;
}

/** @param[in]  write         the write
@param[in]  sector_bytes  1 or more
@return the number of sectors that it writes, also partly */
constexpr uint64_t sectors_of(const Lost_write &write, uint64_t sector_bytes) {
  return (write.offset + write.length - 1) / sector_bytes -
         write.offset / sector_bytes + 1;
}

/** Draw a number below n. The result is the same with every standard library,
unlike with the distributions of <random>.
@param[in,out]  random  the generator
@param[in]      n       1 or more
@return 0 to n - 1; the bias is below 1e-15 for each n used here */
inline uint64_t draw(std::mt19937_64 &random, uint64_t n) {
  return random() % n;
}

/** @param[in,out]  random  the generator
@return NOTHING and EVERYTHING for one cut in sixteen each, otherwise SOME */
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

/** Draw which sectors of a write survive if Survival is SOME. A third of the
writes survives, a third is lost, a third is torn: all sectors before or after
one place are lost, or each sector by chance. An atomic write is never torn:
half survive.
@param[in,out]  random     the generator
@param[in]      n_sectors  sectors of the write, 1 or more
@param[in]      is_atomic  see Lost_write
@return for each sector, whether it survives */
inline std::vector<bool> draw_sectors(std::mt19937_64 &random,
                                      uint64_t n_sectors, bool is_atomic) {
  std::vector<bool> survives(n_sectors);
  const uint64_t fate = draw(random, is_atomic ? 2 : 3);

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

/** Decide which sectors survive a cut. The caller applies them in the order of
the writes. Invariant: each sector then has its old content or that of one of
the writes to it. Of two writes that both survive, the newer one is there, in
whatever order the device destaged them.
@param[in]  seed          the same seed gives the same result
@param[in]  writes        the writes, the oldest first
@param[in]  sector_bytes  the size that the medium writes atomically, 1 or more
@return for each write, for each of its sectors, whether it survives */
inline std::vector<std::vector<bool>> resolve(
    uint64_t seed, const std::vector<Lost_write> &writes,
    uint64_t sector_bytes) {
  std::mt19937_64 random(seed);
  const Survival survival = draw_survival(random);
  std::vector<std::vector<bool>> survives;

  survives.reserve(writes.size());
  for (const auto &write : writes) {
    const uint64_t n_sectors = sectors_of(write, sector_bytes);
    if (survival == Survival::SOME) {
      survives.push_back(draw_sectors(random, n_sectors, write.is_atomic));
    } else {
      survives.emplace_back(n_sectors, survival == Survival::EVERYTHING);
    }
  }
  return survives;
}

}  // namespace powercut

#endif /* powercut_survivors_h */
