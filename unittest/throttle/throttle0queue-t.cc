/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

#include "throttle/policy/throttle0queue.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace spw {
namespace {

constexpr int64_t SECOND = 1'000'000'000;
constexpr int64_t MS = 1'000'000;

/** A queue with a limit of 1,000,000 bytes/s: 1 byte/us. */
Throttle_queue queue_of_one_byte_per_us() {
  Throttle_queue queue;
  queue.set_rate(0, 1e6);
  return queue;
}

/** Session 1 has waited at a time, and not a microsecond before. */
void expect_served_at(Throttle_queue *queue, int64_t ns) {
  queue->advance(ns - 1000);
  EXPECT_TRUE(queue->is_waiting(1));
  queue->advance(ns);
  EXPECT_FALSE(queue->is_waiting(1));
}

TEST(ThrottleQueue, ASessionWaitsForItsBytesAtTheLimit) {
  Throttle_queue queue = queue_of_one_byte_per_us();
  queue.charge(0, 1, 3000.0);
  /* 3,000 bytes at 1 byte/us. */
  EXPECT_DOUBLE_EQ(queue.remaining_s(1), 3e-3);
  expect_served_at(&queue, 3 * MS);
}

TEST(ThrottleQueue, SessionsOfTheSameBytesAreServedOneAfterTheOther) {
  Throttle_queue queue = queue_of_one_byte_per_us();
  for (uint64_t id = 1; id <= 10; ++id) {
    queue.charge(0, id, 1000.0);
  }
  /* 1,000 bytes in each millisecond. */
  for (int64_t ms = 1; ms <= 10; ++ms) {
    queue.advance(ms * MS + 1);
    unsigned n_served = 0;
    for (uint64_t id = 1; id <= 10; ++id) {
      n_served += queue.is_waiting(id) ? 0 : 1;
    }
    EXPECT_EQ(n_served, ms);
  }
}

TEST(ThrottleQueue, TheRemainingTimeIsAnUpperBound) {
  Throttle_queue queue = queue_of_one_byte_per_us();
  EXPECT_EQ(queue.remaining_s(1), 0.0);
  queue.charge(0, 1, 1e6);
  queue.charge(0, 2, 1000.0);
  /* Its own bytes twice, as it comes after a piece that is not served yet; and
  as much of the other one. */
  EXPECT_DOUBLE_EQ(queue.remaining_s(2), 4e-3);
  /* All bytes. */
  EXPECT_DOUBLE_EQ(queue.remaining_s(1), 1.001);
}

TEST(ThrottleQueue, TheOneWithTheMostBytesWaitsLongest) {
  Throttle_queue queue = queue_of_one_byte_per_us();
  queue.charge(0, 1, 4e6);
  /* A session of 400 bytes, which comes again at once each time, waits for
  pieces of the other session only. */
  int64_t now = 0;
  int64_t longest = 0;
  double bytes = 0.0;
  while (now < SECOND) {
    queue.charge(now, 2, 400.0);
    const int64_t begin = now;
    while (queue.is_waiting(2)) {
      now += MS / 10;
      queue.advance(now);
    }
    longest = std::max(longest, now - begin);
    bytes += 400.0;
  }
  /* 4,096 bytes of the other, and its own. */
  EXPECT_LE(longest, 5 * MS);
  /* Half of the limit. */
  EXPECT_NEAR(bytes, 0.5e6, 0.05e6);
  EXPECT_TRUE(queue.is_waiting(1));
}

TEST(ThrottleQueue, EachSessionGetsTheSameRate) {
  /* Sessions that are charged 100 to 102,400 bytes at a time. */
  Throttle_queue queue = queue_of_one_byte_per_us();
  std::array<double, 11> bytes{};
  std::array<double, 11> served{};
  for (int64_t now = 0; now <= 10 * SECOND; now += MS / 10) {
    queue.advance(now);
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (!queue.is_waiting(i)) {
        served[i] += bytes[i];
        bytes[i] = 100.0 * static_cast<double>(1 << i);
        queue.charge(now, i, bytes[i]);
      }
    }
  }
  /* 10,000,000 bytes for 11 sessions. A charge of the last one is a ninth of
  its share. */
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_NEAR(served[i], 10e6 / 11.0, 110e3) << i;
  }
}

TEST(ThrottleQueue, TellsWhoHasWaited) {
  Throttle_queue queue = queue_of_one_byte_per_us();
  queue.charge(0, 1, 5000.0);
  queue.charge(0, 2, 1000.0);
  EXPECT_TRUE(queue.take_served().empty());
  queue.advance(1 * MS + 1);
  EXPECT_EQ(queue.take_served(), std::vector<uint64_t>{2});
  EXPECT_TRUE(queue.take_served().empty());
  queue.set_rate(2 * MS, THROTTLE_UNLIMITED);
  EXPECT_EQ(queue.take_served(), std::vector<uint64_t>{1});
}

TEST(ThrottleQueue, UnusedTimeIsNotSaved) {
  Throttle_queue queue = queue_of_one_byte_per_us();
  queue.advance(SECOND);
  queue.charge(SECOND, 1, 2000.0);
  EXPECT_DOUBLE_EQ(queue.remaining_s(1), 2e-3);
}

TEST(ThrottleQueue, WhoIsChargedAgainWaitsForBoth) {
  Throttle_queue queue = queue_of_one_byte_per_us();
  queue.charge(0, 1, 2000.0);
  queue.charge(1 * MS, 1, 3000.0);
  /* 5,000 bytes from the begin on. */
  expect_served_at(&queue, 5 * MS);
}

TEST(ThrottleQueue, AHigherLimitEndsADelayEarlier) {
  Throttle_queue queue = queue_of_one_byte_per_us();
  queue.charge(0, 1, 4000.0);
  /* 1,000 bytes at 1 byte/us, 3,000 at 3. */
  queue.set_rate(1 * MS, 3e6);
  expect_served_at(&queue, 2 * MS);
}

TEST(ThrottleQueue, WithoutALimitNobodyWaits) {
  Throttle_queue queue = queue_of_one_byte_per_us();
  queue.charge(0, 1, 1e9);
  queue.charge(0, 2, 1e9);
  queue.set_rate(0, THROTTLE_UNLIMITED);
  EXPECT_FALSE(queue.is_waiting(1));
  EXPECT_FALSE(queue.is_waiting(2));
  queue.charge(0, 1, 1e9);
  EXPECT_FALSE(queue.is_waiting(1));
  /* And with a limit again, nothing is left of it. */
  queue.set_rate(SECOND, 1e6);
  queue.charge(SECOND, 3, 1000.0);
  EXPECT_DOUBLE_EQ(queue.remaining_s(3), 1e-3);
}

TEST(ThrottleQueue, ALimitOfNothingServesNobody) {
  Throttle_queue queue = queue_of_one_byte_per_us();
  queue.set_rate(0, 0.0);
  queue.charge(0, 1, 1.0);
  queue.advance(1000 * SECOND);
  EXPECT_GT(queue.remaining_s(1), 1e9);
}

TEST(ThrottleQueue, ASessionThatIsForgivenLeavesNothingBehind) {
  Throttle_queue queue = queue_of_one_byte_per_us();
  queue.charge(0, 1, 1e6);
  queue.charge(0, 2, 2000.0);
  EXPECT_EQ(queue.bytes_of(1), 1e6);
  queue.forgive(1);
  EXPECT_FALSE(queue.is_waiting(1));
  EXPECT_EQ(queue.bytes_of(1), 0.0);
  /* Session 2's 2,000 bytes take 2 ms, as nothing else is served. */
  queue.advance(2 * MS);
  EXPECT_FALSE(queue.is_waiting(2));
  queue.forgive(2);
}

TEST(ThrottleQueue, ADeadlineIsKeptWhileASessionWaits) {
  Throttle_queue queue = queue_of_one_byte_per_us();
  queue.charge(0, 1, 1000.0);
  queue.set_deadline(1, 7 * MS);
  EXPECT_EQ(queue.deadline_ns(1), 7 * MS);
  queue.advance(1 * MS);
  EXPECT_EQ(queue.deadline_ns(1), 0);
  queue.set_deadline(1, 7 * MS);
  EXPECT_EQ(queue.deadline_ns(1), 0);
}

TEST(ThrottleQueue, ASessionSucceedsTheFirstOfItsAccountThatHasEnded) {
  constexpr size_t ACCOUNT = 7;
  Throttle_queue queue = queue_of_one_byte_per_us();
  for (const uint64_t id : {1, 2, 3}) {
    queue.charge(0, id, 10e3);
  }
  queue.charge(0, 4, 100.0);
  for (const uint64_t id : {4, 2, 1}) {
    queue.end(ACCOUNT, id);
  }
  queue.end(ACCOUNT + 1, 3);
  /* The first piece of each of the three, 4,096 bytes, and session 4's 100
  bytes: 12,388 us. Session 4 has waited. */
  queue.advance(13 * MS);
  queue.succeed(ACCOUNT, 11);
  queue.succeed(ACCOUNT, 12);
  queue.succeed(ACCOUNT, 13);
  EXPECT_EQ(queue.bytes_of(11), 10e3 - 4096.0);
  EXPECT_EQ(queue.bytes_of(12), 10e3 - 4096.0);
  EXPECT_FALSE(queue.is_waiting(13));
  for (const uint64_t id : {1, 2, 4}) {
    EXPECT_FALSE(queue.is_waiting(id));
  }
  EXPECT_TRUE(queue.is_waiting(3));
  /* Three sessions with 5,904 bytes each: 17,712 us. */
  queue.advance(31 * MS);
  EXPECT_FALSE(queue.is_waiting(11));
  EXPECT_FALSE(queue.is_waiting(12));
  EXPECT_FALSE(queue.is_waiting(3));
}

TEST(ThrottleQueue, NobodySucceedsASessionThatHasWaited) {
  Throttle_queue queue = queue_of_one_byte_per_us();
  queue.charge(0, 1, 100.0);
  queue.advance(1 * MS);
  queue.end(0, 1);
  queue.succeed(0, 11);
  EXPECT_FALSE(queue.is_waiting(11));
  queue.charge(1 * MS, 2, 100.0);
  queue.end(0, 2);
  queue.set_rate(1 * MS, THROTTLE_UNLIMITED);
  queue.succeed(0, 12);
  EXPECT_FALSE(queue.is_waiting(12));
}

TEST(ThrottleQueue, AClockThatIsLateChangesNothing) {
  Throttle_queue queue = queue_of_one_byte_per_us();
  queue.charge(10 * MS, 1, 5000.0);
  queue.charge(8 * MS, 2, 1000.0);
  queue.advance(9 * MS);
  EXPECT_TRUE(queue.is_waiting(2));
  queue.advance(16 * MS);
  EXPECT_FALSE(queue.is_waiting(1));
  EXPECT_FALSE(queue.is_waiting(2));
}

TEST(ThrottleDelay, TheMaximumIsForEachKib) {
  EXPECT_DOUBLE_EQ(throttle_max_delay_s(500'000, 100.0), 0.5);
  EXPECT_DOUBLE_EQ(throttle_max_delay_s(500'000, 1024.0), 0.5);
  EXPECT_DOUBLE_EQ(throttle_max_delay_s(500'000, 4096.0), 2.0);
}

TEST(ThrottleExpiry, AnOldLimitHoldsWhileRedoSpaceIsShort) {
  EXPECT_TRUE(throttle_is_current(THROTTLE_EXPIRY_NS, 10, 100, 75.0));
  EXPECT_FALSE(throttle_is_current(THROTTLE_EXPIRY_NS + 1, 75, 100, 75.0));
  EXPECT_TRUE(throttle_is_current(THROTTLE_EXPIRY_NS + 1, 76, 100, 75.0));
  EXPECT_FALSE(throttle_is_current(THROTTLE_EXPIRY_NS + 1, 76, 0, 75.0));
}

}  // namespace
}  // namespace spw
