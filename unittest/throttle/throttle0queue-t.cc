/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

#include "throttle/policy/throttle0queue.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

namespace spw {
namespace {

/** A second and a millisecond: nanoseconds. */
constexpr int64_t SECOND_NS = 1'000'000'000;
constexpr int64_t MS_NS = 1'000'000;

constexpr size_t ACCOUNT = 7;
constexpr size_t OTHER_ACCOUNT = 8;

/** The highest id of a session. */
constexpr uint64_t MAX_ID = (uint64_t{1} << 32) - 1;

/** @return a queue with a limit of 1,000,000 bytes/s: 1 byte/us */
Throttle_queue queue_of_one_byte_per_us() {
  Throttle_queue queue;
  queue.set_rate(0, 1e6);
  return queue;
}

/** Session 1 has waited at a time, and not a microsecond before.
@param[in]  queue   the queue
@param[in]  end_ns  the time: nanoseconds */
void expect_served_at(Throttle_queue *queue, int64_t end_ns) {
  queue->advance(end_ns - 1000);
  EXPECT_TRUE(queue->is_waiting(1));
  queue->advance(end_ns);
  EXPECT_FALSE(queue->is_waiting(1));
}

TEST(ThrottleQueue, SessionWaitsForItsBytesAtTheLimit) {
  Throttle_queue queue = queue_of_one_byte_per_us();
  queue.charge(0, 1, 3000.0);
  /* 3000 bytes / 1 byte/us = 3 ms */
  EXPECT_DOUBLE_EQ(queue.remaining_s(1), 3e-3);
  expect_served_at(&queue, 3 * MS_NS);
}

TEST(ThrottleQueue, SessionsOfEqualChargesAreServedOneAfterTheOther) {
  Throttle_queue queue = queue_of_one_byte_per_us();
  for (uint64_t id = 1; id <= 10; ++id) {
    queue.charge(0, id, 1000.0);
  }
  /* 1000 bytes / 1 byte/us = 1 ms for each session */
  for (int64_t ms = 1; ms <= 10; ++ms) {
    queue.advance(ms * MS_NS + 1);
    unsigned n_served = 0;
    for (uint64_t id = 1; id <= 10; ++id) {
      n_served += queue.is_waiting(id) ? 0 : 1;
    }
    EXPECT_EQ(n_served, ms);
  }
}

TEST(ThrottleQueue, RemainingTimeIsAnUpperBound) {
  Throttle_queue queue = queue_of_one_byte_per_us();
  EXPECT_EQ(queue.remaining_s(1), 0.0);
  queue.charge(0, 1, 1e6);
  queue.charge(0, 2, 1000.0);
  /* Each of the two sessions counts with the tag and the bytes of session 2:
  2 * (1000 + 1000) bytes / 1 byte/us = 4 ms. */
  EXPECT_DOUBLE_EQ(queue.remaining_s(2), 4e-3);
  /* At most all bytes: 1,000,000 + 1000 */
  EXPECT_DOUBLE_EQ(queue.remaining_s(1), 1.001);
}

TEST(ThrottleQueue, SessionWithMostBytesWaitsLongest) {
  Throttle_queue queue = queue_of_one_byte_per_us();
  queue.charge(0, 1, 4e6);
  /* Session 2 is charged 400 bytes, and again as soon as they are served. */
  int64_t now_ns = 0;
  int64_t longest_ns = 0;
  double bytes = 0.0;
  while (now_ns < SECOND_NS) {
    queue.charge(now_ns, 2, 400.0);
    const int64_t begin_ns = now_ns;
    while (queue.is_waiting(2)) {
      now_ns += MS_NS / 10;
      queue.advance(now_ns);
    }
    longest_ns = std::max(longest_ns, now_ns - begin_ns);
    bytes += 400.0;
  }
  /* It waits for at most one piece of session 1 and for its own bytes: 4096 +
  400 bytes / 1 byte/us = 4.5 ms. */
  EXPECT_LE(longest_ns, 5 * MS_NS);
  /* Half of 1,000,000 bytes/s * 1 s */
  EXPECT_NEAR(bytes, 0.5e6, 0.05e6);
  EXPECT_TRUE(queue.is_waiting(1));
}

TEST(ThrottleQueue, EachSessionGetsTheSameRate) {
  /* The charges of the 11 sessions are 100, 200, ... 102,400 bytes. */
  Throttle_queue queue = queue_of_one_byte_per_us();
  std::array<double, 11> charge_bytes{};
  std::array<double, 11> served_bytes{};
  for (int64_t now_ns = 0; now_ns <= 10 * SECOND_NS; now_ns += MS_NS / 10) {
    queue.advance(now_ns);
    for (size_t i = 0; i < charge_bytes.size(); ++i) {
      if (!queue.is_waiting(i)) {
        served_bytes[i] += charge_bytes[i];
        charge_bytes[i] = 100.0 * static_cast<double>(1 << i);
        queue.charge(now_ns, i, charge_bytes[i]);
      }
    }
  }
  /* 1,000,000 bytes/s * 10 s / 11 = 909,091 bytes. The last charge, of up to
  102,400 bytes, may not be served yet. */
  for (size_t i = 0; i < charge_bytes.size(); ++i) {
    EXPECT_NEAR(served_bytes[i], 10e6 / 11.0, 110e3) << i;
  }
}

TEST(ThrottleQueue, ReturnsEachServedSessionOnce) {
  Throttle_queue queue = queue_of_one_byte_per_us();
  queue.charge(0, 1, 5000.0);
  queue.charge(0, 2, 1000.0);
  EXPECT_TRUE(queue.take_served().empty());
  /* Session 2 comes first, as its piece is smaller than the 4,096 bytes of
  session 1: 1000 bytes / 1 byte/us = 1 ms. */
  queue.advance(1 * MS_NS + 1);
  EXPECT_EQ(queue.take_served(), std::vector<uint64_t>{2});
  EXPECT_TRUE(queue.take_served().empty());
  /* Without a limit all sessions have waited. */
  queue.set_rate(2 * MS_NS, THROTTLE_UNLIMITED);
  EXPECT_EQ(queue.take_served(), std::vector<uint64_t>{1});
}

TEST(ThrottleQueue, UnusedTimeIsNotSaved) {
  Throttle_queue queue = queue_of_one_byte_per_us();
  queue.advance(SECOND_NS);
  queue.charge(SECOND_NS, 1, 2000.0);
  /* 2000 bytes / 1 byte/us = 2 ms, although no session was charged for 1 s. */
  EXPECT_DOUBLE_EQ(queue.remaining_s(1), 2e-3);
}

TEST(ThrottleQueue, SessionWaitsForSumOfItsCharges) {
  Throttle_queue queue = queue_of_one_byte_per_us();
  queue.charge(0, 1, 2000.0);
  queue.charge(1 * MS_NS, 1, 3000.0);
  /* (2000 + 3000) bytes / 1 byte/us = 5 ms after the first charge */
  expect_served_at(&queue, 5 * MS_NS);
}

TEST(ThrottleQueue, HigherLimitEndsDelayEarlier) {
  Throttle_queue queue = queue_of_one_byte_per_us();
  queue.charge(0, 1, 4000.0);
  /* 1000 bytes / 1 byte/us + 3000 bytes / 3 bytes/us = 2 ms */
  queue.set_rate(1 * MS_NS, 3e6);
  expect_served_at(&queue, 2 * MS_NS);
}

TEST(ThrottleQueue, NoSessionWaitsWithoutALimit) {
  Throttle_queue queue = queue_of_one_byte_per_us();
  queue.charge(0, 1, 1e9);
  queue.charge(0, 2, 1e9);
  queue.set_rate(0, THROTTLE_UNLIMITED);
  EXPECT_FALSE(queue.is_waiting(1));
  EXPECT_FALSE(queue.is_waiting(2));
  queue.charge(0, 1, 1e9);
  EXPECT_FALSE(queue.is_waiting(1));
  /* With a limit again, the bytes of before do not count: 1000 bytes / 1
  byte/us = 1 ms. */
  queue.set_rate(SECOND_NS, 1e6);
  queue.charge(SECOND_NS, 3, 1000.0);
  EXPECT_DOUBLE_EQ(queue.remaining_s(3), 1e-3);
}

TEST(ThrottleQueue, LimitOfZeroServesNoSession) {
  Throttle_queue queue = queue_of_one_byte_per_us();
  queue.set_rate(0, 0.0);
  queue.charge(0, 1, 1.0);
  queue.advance(1000 * SECOND_NS);
  /* 1 byte / 0 bytes/s is infinite. */
  EXPECT_GT(queue.remaining_s(1), 1e9);
}

TEST(ThrottleQueue, ForgivenBytesDelayNoOtherSession) {
  Throttle_queue queue = queue_of_one_byte_per_us();
  queue.charge(0, 1, 1e6);
  queue.charge(0, 2, 2000.0);
  EXPECT_EQ(queue.bytes_of(1), 1e6);
  queue.forgive(1);
  EXPECT_FALSE(queue.is_waiting(1));
  EXPECT_EQ(queue.bytes_of(1), 0.0);
  /* Session 2's 2,000 bytes take 2 ms, as nothing else is served. */
  queue.advance(2 * MS_NS);
  EXPECT_FALSE(queue.is_waiting(2));
  queue.forgive(2);
}

TEST(ThrottleQueue, DeadlineLastsUntilTheSessionIsServed) {
  Throttle_queue queue = queue_of_one_byte_per_us();
  queue.charge(0, 1, 1000.0);
  queue.set_deadline(1, 7 * MS_NS);
  EXPECT_EQ(queue.deadline_ns(1), 7 * MS_NS);
  queue.advance(1 * MS_NS);
  EXPECT_EQ(queue.deadline_ns(1), 0);
  queue.set_deadline(1, 7 * MS_NS);
  EXPECT_EQ(queue.deadline_ns(1), 0);
}

TEST(ThrottleQueue, NewSessionWaitsForTheBytesOfAnEndedOneOfItsAccount) {
  Throttle_queue queue = queue_of_one_byte_per_us();
  queue.charge(0, 1, 10e3);
  queue.charge(0, 2, 10e3);
  queue.end(ACCOUNT, 1, 3);
  queue.end(OTHER_ACCOUNT, 2, 3);
  EXPECT_FALSE(queue.is_waiting(1));
  /* The first piece of each of the two, 4,096 bytes: 8,192 us. */
  queue.advance(9 * MS_NS);
  queue.succeed(ACCOUNT, 3);
  EXPECT_EQ(queue.bytes_of(3), 10e3 - 4096.0);
  queue.succeed(ACCOUNT, 4);
  EXPECT_FALSE(queue.is_waiting(4));
  /* Two sessions with 5,904 bytes each: 11,808 us. */
  queue.advance(21 * MS_NS);
  EXPECT_FALSE(queue.is_waiting(3));
}

TEST(ThrottleQueue, OnlyASessionThatBeganLaterTakesThePlaceOfAnEndedOne) {
  Throttle_queue queue = queue_of_one_byte_per_us();
  for (const uint64_t next_id : {uint64_t{6}, MAX_ID}) {
    queue.charge(0, 1, 10e3);
    queue.end(ACCOUNT, 1, next_id);
    queue.succeed(ACCOUNT, next_id - 1);
    EXPECT_FALSE(queue.is_waiting(next_id - 1));
    /* After the maximum of 32 bits ids begin again. */
    const uint64_t id = next_id == MAX_ID ? 7 : 6;
    queue.succeed(ACCOUNT, id);
    EXPECT_TRUE(queue.is_waiting(id));
  }
}

TEST(ThrottleQueue, EndedSessionsOfAnAccountHaveOnePlace) {
  Throttle_queue queue = queue_of_one_byte_per_us();
  for (uint64_t id = 1; id <= 100; ++id) {
    queue.charge(0, id, 1e6);
    queue.end(ACCOUNT, id, id + 1);
  }
  /* Session 200 has one of two places: its 10,000 bytes are served with at most
  10,000 + 4096 of the others. 24,096 bytes / 1 byte/us = 25 ms */
  queue.charge(0, 200, 10e3);
  queue.advance(25 * MS_NS);
  EXPECT_FALSE(queue.is_waiting(200));
}

TEST(ThrottleQueue, NewSessionsShareTheBytesOfEndedOnes) {
  Throttle_queue queue = queue_of_one_byte_per_us();
  /* (10,000 + 20,000 + 60,000) / 3 = 30,000 bytes */
  queue.charge(0, 1, 10e3);
  queue.charge(0, 2, 20e3);
  queue.charge(0, 3, 60e3);
  for (const uint64_t id : {1, 2, 3}) {
    queue.set_deadline(id, static_cast<int64_t>(id) * SECOND_NS);
    queue.end(ACCOUNT, id, 4);
  }
  for (const uint64_t id : {4, 5, 6}) {
    queue.succeed(ACCOUNT, id);
    EXPECT_EQ(queue.bytes_of(id), 30e3);
  }
  queue.succeed(ACCOUNT, 7);
  EXPECT_FALSE(queue.is_waiting(7));
  /* 90,000 bytes / 1 byte/us */
  queue.advance(90 * MS_NS - 1000);
  EXPECT_TRUE(queue.is_waiting(6));
  queue.advance(90 * MS_NS + 1);
  EXPECT_FALSE(queue.is_waiting(6));
}

/* The rest of the last piece cannot be divided. */
TEST(ThrottleQueue, FewBytesOfEndedSessionsAreLeftToOneSession) {
  Throttle_queue queue = queue_of_one_byte_per_us();
  for (const uint64_t id : {1, 2}) {
    queue.charge(0, id, 100.0);
    queue.end(ACCOUNT, id, 3);
  }
  queue.succeed(ACCOUNT, 3);
  EXPECT_EQ(queue.bytes_of(3), 100.0);
  queue.succeed(ACCOUNT, 4);
  EXPECT_EQ(queue.bytes_of(4), 100.0);
  queue.charge(0, 5, 100.0);
  queue.end(ACCOUNT, 5, 8);
  queue.charge(0, 6, 20.0);
  queue.end(ACCOUNT, 6, 8);
  /* Piece 100 bytes, rest 20: the mean, 60, is more than the rest. */
  queue.succeed(ACCOUNT, 8);
  EXPECT_EQ(queue.bytes_of(8), 120.0);
  queue.succeed(ACCOUNT, 9);
  EXPECT_FALSE(queue.is_waiting(9));
}

TEST(ThrottleQueue, PlaceOfEndedSessionsIsForgottenAtTheLastDeadline) {
  Throttle_queue queue = queue_of_one_byte_per_us();
  for (const uint64_t id : {1, 2, 3}) {
    queue.charge(0, id, 1e6);
    queue.set_deadline(id, 10 * MS_NS);
  }
  queue.end(ACCOUNT, 1, 4);
  queue.set_deadline(2, 20 * MS_NS);
  queue.end(ACCOUNT, 2, 4);
  queue.expire(10 * MS_NS);
  queue.succeed(ACCOUNT, 4);
  EXPECT_TRUE(queue.is_waiting(4));
  queue.expire(20 * MS_NS);
  queue.succeed(ACCOUNT, 5);
  EXPECT_FALSE(queue.is_waiting(5));
  /* A session that has not ended decides for itself. */
  EXPECT_TRUE(queue.is_waiting(3));
}

TEST(ThrottleQueue, NewSessionWithBytesOfItsOwnWaitsForThoseOfEndedOnesToo) {
  Throttle_queue queue = queue_of_one_byte_per_us();
  queue.charge(0, 5, 4000.0);
  queue.charge(0, 6, 4000.0);
  for (const uint64_t id : {1, 2}) {
    queue.charge(0, id, 10e3);
    queue.end(ACCOUNT, id, 5);
  }
  for (const uint64_t id : {5, 6}) {
    queue.succeed(ACCOUNT, id);
    EXPECT_EQ(queue.bytes_of(id), 14e3);
  }
  /* 28,000 bytes / 1 byte/us */
  queue.advance(28 * MS_NS - 1000);
  EXPECT_TRUE(queue.is_waiting(5) || queue.is_waiting(6));
  queue.advance(28 * MS_NS + 1);
  EXPECT_FALSE(queue.is_waiting(5) || queue.is_waiting(6));
}

/* Nothing is served meanwhile. Then the last session is served when the bytes
of all are. */
TEST(ThrottleQueue, NoBytesAreLostWhereSessionsEndAndBegin) {
  std::mt19937_64 random{1};
  for (unsigned run = 0; run < 100; ++run) {
    Throttle_queue queue;
    queue.set_rate(0, 0.0);
    double bytes = 0.0;
    uint64_t next_id = 2;
    for (unsigned step = 0; step < 300; ++step) {
      const size_t account = random() % 3;
      const uint64_t id = 2 + random() % next_id;
      switch (random() % 3) {
        case 0:
          bytes += 1000.0;
          queue.charge(0, id, 1000.0);
          break;
        case 1:
          queue.end(account, id, next_id);
          break;
        default:
          queue.succeed(account, ++next_id);
      }
    }
    queue.charge(0, 1, 1e6);
    /* 1 byte/us */
    queue.set_rate(0, 1e6);
    expect_served_at(&queue, static_cast<int64_t>(1000.0 * (bytes + 1e6) + 1));
  }
}

TEST(ThrottleQueue, ServedSessionHasNoSuccessor) {
  Throttle_queue queue = queue_of_one_byte_per_us();
  queue.charge(0, 1, 100.0);
  queue.advance(1 * MS_NS);
  queue.end(ACCOUNT, 1, 10);
  queue.succeed(ACCOUNT, 11);
  EXPECT_FALSE(queue.is_waiting(11));
  /* Its place is served before the next one ends. */
  queue.charge(1 * MS_NS, 2, 100.0);
  queue.end(ACCOUNT, 2, 10);
  queue.advance(2 * MS_NS);
  queue.succeed(ACCOUNT, 11);
  EXPECT_FALSE(queue.is_waiting(11));
  queue.charge(2 * MS_NS, 3, 100.0);
  queue.end(ACCOUNT, 3, 10);
  queue.succeed(ACCOUNT, 11);
  EXPECT_EQ(queue.bytes_of(11), 100.0);
  queue.charge(2 * MS_NS, 4, 100.0);
  queue.end(ACCOUNT, 4, 10);
  queue.set_rate(2 * MS_NS, THROTTLE_UNLIMITED);
  queue.succeed(ACCOUNT, 12);
  EXPECT_FALSE(queue.is_waiting(12));
}

TEST(ThrottleQueue, TimeBeforeTheLastCallCountsAsThatOfTheLastCall) {
  Throttle_queue queue = queue_of_one_byte_per_us();
  /* The charge at 8 ms counts as one at 10 ms. */
  queue.charge(10 * MS_NS, 1, 5000.0);
  queue.charge(8 * MS_NS, 2, 1000.0);
  queue.advance(9 * MS_NS);
  EXPECT_TRUE(queue.is_waiting(2));
  /* 10 ms + (5000 + 1000) bytes / 1 byte/us = 16 ms */
  queue.advance(16 * MS_NS);
  EXPECT_FALSE(queue.is_waiting(1));
  EXPECT_FALSE(queue.is_waiting(2));
}

TEST(ThrottleDelay, MaxDelayIsForEachKib) {
  /* At least that of 1 KiB: 0.5 s */
  EXPECT_DOUBLE_EQ(throttle_max_delay_s(500'000, 100.0), 0.5);
  EXPECT_DOUBLE_EQ(throttle_max_delay_s(500'000, 1024.0), 0.5);
  /* 0.5 s * 4096 / 1024 = 2 s */
  EXPECT_DOUBLE_EQ(throttle_max_delay_s(500'000, 4096.0), 2.0);
}

/* The arguments: time since the decision in nanoseconds, checkpoint age and
sync age in bytes, age threshold in percent. */
TEST(ThrottleDelay, NoSessionWaitsForMoreThanAMinute) {
  /* 0.5 s for each KiB: 100 KiB would be 50 s, 121 KiB 60.5 s. */
  EXPECT_EQ(throttle_max_wait_ns(500'000, 100.0 * 1024.0), 50 * SECOND_NS);
  EXPECT_EQ(throttle_max_wait_ns(500'000, 121.0 * 1024.0), 60 * SECOND_NS);
  EXPECT_EQ(throttle_max_wait_ns(500'000, 1e300), 60 * SECOND_NS);
}

TEST(ThrottleDelay, LocksAreHeldForTenSecondsAtMost) {
  EXPECT_EQ(throttle_locked_end_ns(5 * SECOND_NS, 65 * SECOND_NS),
            15 * SECOND_NS);
  EXPECT_EQ(throttle_locked_end_ns(5 * SECOND_NS, 7 * SECOND_NS),
            7 * SECOND_NS);
}

TEST(ThrottleExpiry, ExpiredLimitHoldsAboveTheAgeThreshold) {
  EXPECT_TRUE(throttle_is_current(THROTTLE_EXPIRY_NS, 10, 100, 75.0));
  /* A checkpoint age of 75 / 100 = 75 % is not above the threshold; 76 % is. */
  EXPECT_FALSE(throttle_is_current(THROTTLE_EXPIRY_NS + 1, 75, 100, 75.0));
  EXPECT_TRUE(throttle_is_current(THROTTLE_EXPIRY_NS + 1, 76, 100, 75.0));
  /* The sync age is not known. */
  EXPECT_FALSE(throttle_is_current(THROTTLE_EXPIRY_NS + 1, 76, 0, 75.0));
}

}  // namespace
}  // namespace spw
