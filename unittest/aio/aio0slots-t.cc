/* Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE. */

#include "aio/policy/aio0slots.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <set>
#include <vector>

namespace {

using spw::Aio_slots;

/* Rule A: a single request at a time stays with one thread. */
TEST(Aio_slots, SingleRequestsUseOneSegment) {
  Aio_slots slots(4, 8);
  const uint32_t first = slots.take();
  slots.release(first);

  for (int i = 0; i < 100; ++i) {
    const uint32_t slot = slots.take();
    EXPECT_EQ(first, slot);
    slots.release(slot);
  }
}

/* Rule B: concurrent requests use the threads in cyclic order. */
TEST(Aio_slots, ConcurrentRequestsUseSegmentsInCyclicOrder) {
  constexpr uint32_t SEGMENTS = 4;
  constexpr uint32_t DEPTH = 8;
  Aio_slots slots(SEGMENTS, DEPTH);

  for (uint32_t i = 0; i < SEGMENTS * DEPTH; ++i) {
    EXPECT_EQ(i % SEGMENTS, slots.take() / DEPTH) << i;
    for (uint32_t segment = 0; segment < SEGMENTS; ++segment) {
      /* Requests 0 to i whose number modulo 4 is the segment. */
      EXPECT_EQ((i + SEGMENTS - segment) / SEGMENTS, slots.n_used(segment));
    }
  }
}

/* Rule B: a thread without a free slot is skipped. */
TEST(Aio_slots, FullSegmentIsSkipped) {
  Aio_slots slots(3, 2);
  std::vector<uint32_t> taken;
  for (int i = 0; i < 6; ++i) {
    taken.push_back(slots.take());
  }
  std::sort(taken.begin(), taken.end());
  EXPECT_EQ((std::vector<uint32_t>{0, 1, 2, 3, 4, 5}), taken);
  EXPECT_FALSE(slots.has_free());

  /* Two slots a segment: slot 5 is in segment 2, slot 1 in segment 0. */
  slots.release(5);
  slots.release(1);
  EXPECT_EQ(1U, slots.take());
  EXPECT_EQ(5U, slots.take());
}

/* Rule C: the slots used over time follow the requests in flight, not the
depth. */
TEST(Aio_slots, SlotsUsedOverTimeFollowRequestsInFlight) {
  constexpr size_t IN_FLIGHT = 128;
  for (const uint32_t depth : {256, 4096}) {
    Aio_slots slots(64, depth);
    std::set<uint32_t> touched;
    std::deque<uint32_t> in_flight;

    for (int i = 0; i < 100000; ++i) {
      in_flight.push_back(slots.take());
      touched.insert(in_flight.back());
      if (in_flight.size() > IN_FLIGHT) {
        slots.release(in_flight.front());
        in_flight.pop_front();
      }
    }
    EXPECT_LE(touched.size(), 3 * IN_FLIGHT) << depth;
  }
}

/* 64 threads of 4096 slots: 262,144 positions, all different. */
TEST(Aio_slots, ManySlots) {
  Aio_slots slots(64, 4096);
  std::vector<bool> taken(64 * 4096);

  for (size_t i = 0; i < taken.size(); ++i) {
    const uint32_t slot = slots.take();
    ASSERT_LT(slot, taken.size());
    ASSERT_FALSE(taken[slot]);
    taken[slot] = true;
  }
  for (uint32_t segment = 0; segment < 64; ++segment) {
    EXPECT_EQ(4096U, slots.n_used(segment));
  }
}

/* All shapes, at random and up to full: no slot is taken twice or lost, and the
counts are right. */
TEST(Aio_slots, RandomUse) {
  std::mt19937 random(42);

  for (const uint32_t n_segments : {1, 2, 3, 17, 63, 64}) {
    for (const uint32_t depth : {1, 2, 32, 100}) {
      Aio_slots slots(n_segments, depth);
      const uint32_t n = n_segments * depth;
      std::vector<uint32_t> taken;
      std::vector<bool> is_taken(n);

      for (int i = 0; i < 20000; ++i) {
        const bool take = taken.empty() || (taken.size() < n && random() % 2);
        if (take) {
          const uint32_t slot = slots.take();
          ASSERT_LT(slot, n);
          ASSERT_FALSE(is_taken[slot]);
          is_taken[slot] = true;
          taken.push_back(slot);
        } else {
          const size_t at = random() % taken.size();
          slots.release(taken[at]);
          is_taken[taken[at]] = false;
          taken[at] = taken.back();
          taken.pop_back();
        }
      }

      while (taken.size() < n) {
        taken.push_back(slots.take());
      }
      for (uint32_t segment = 0; segment < n_segments; ++segment) {
        ASSERT_EQ(depth, slots.n_used(segment));
      }
    }
  }
}

/* Rule D: in the order of completion. */
TEST(Aio_slots, CompletedSlotsInOrderOfCompletion) {
  Aio_slots slots(2, 8);
  uint32_t slot;

  EXPECT_FALSE(slots.pop_completed(0, &slot));

  slots.push_completed(0, 3);
  slots.push_completed(1, 9);
  slots.push_completed(0, 1);
  slots.push_completed(0, 2);

  ASSERT_TRUE(slots.pop_completed(0, &slot));
  EXPECT_EQ(3U, slot);
  /* A partial I/O is submitted and completes again. */
  slots.push_completed(0, 3);
  for (const uint32_t expected : {1, 2, 3}) {
    ASSERT_TRUE(slots.pop_completed(0, &slot));
    EXPECT_EQ(expected, slot);
  }
  EXPECT_FALSE(slots.pop_completed(0, &slot));

  ASSERT_TRUE(slots.pop_completed(1, &slot));
  EXPECT_EQ(9U, slot);
  EXPECT_FALSE(slots.pop_completed(1, &slot));
}

}  // namespace
