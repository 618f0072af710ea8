/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file unittest/bench/disk_timing-t.cc
Tests of the timing of the benchmarks' disk. */

#include "bench/disk/disk_timing.h"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace timed_disk {
namespace {

constexpr uint64_t PAGE_BYTES = 16384;
constexpr double FOREVER_S = 1e9;
constexpr uint64_t SEED = 1;

/** @return the times at which n writes end that arrive at 0, by their IDs */
std::vector<double> ends_of_writes(const Parameters &parameters, uint64_t n) {
  Disk disk(parameters, SEED);
  for (uint64_t i = 0; i < n; ++i) {
    disk.submit({i, Kind::WRITE, i * PAGE_BYTES, PAGE_BYTES}, 0);
  }
  std::vector<double> result(n);
  for (const Completion &each : disk.completed(FOREVER_S)) {
    result[each.id] = each.time_s;
  }
  return result;
}

TEST(DiskTiming, ADiskWithoutLimitsTakesNoTime) {
  EXPECT_EQ((std::vector<double>{0, 0}), ends_of_writes({}, 2));
}

TEST(DiskTiming, IosAreTransferredOneAfterTheOther) {
  Parameters parameters;
  parameters.ios_per_s = 100;
  // 1 / 100 s each.
  const auto ends = ends_of_writes(parameters, 3);
  EXPECT_DOUBLE_EQ(0.01, ends[0]);
  EXPECT_DOUBLE_EQ(0.02, ends[1]);
  EXPECT_DOUBLE_EQ(0.03, ends[2]);
}

TEST(DiskTiming, TheSlowerOfIosAndBytesCounts) {
  Parameters parameters;
  parameters.ios_per_s = 100;
  parameters.bytes_per_s = PAGE_BYTES * 50;
  // A page takes 1 / 50 s, which is longer than 1 / 100 s.
  EXPECT_DOUBLE_EQ(0.02, ends_of_writes(parameters, 1)[0]);
  parameters.ios_per_s = 10;
  EXPECT_DOUBLE_EQ(0.1, ends_of_writes(parameters, 1)[0]);
}

TEST(DiskTiming, LatenciesOverlap) {
  Parameters parameters;
  parameters.ios_per_s = 1000;
  parameters.latency_s = 0.05;
  // The third is transferred after 3 / 1000 s, and ends 0.05 s later.
  EXPECT_DOUBLE_EQ(0.053, ends_of_writes(parameters, 3)[2]);
}

TEST(DiskTiming, LatencyIsLognormal) {
  Parameters parameters;
  parameters.latency_s = 0.001;
  parameters.latency_sigma = 0.5;
  auto ends = ends_of_writes(parameters, 10'000);
  std::sort(ends.begin(), ends.end());
  EXPECT_NEAR(0.001, ends[5000], 0.00003);
  // exp(2.33 * 0.5) = 3.2 medians.
  EXPECT_NEAR(0.0032, ends[9900], 0.0002);
}

TEST(DiskTiming, AnIdleDiskSavesNoTimeUp) {
  Parameters parameters;
  parameters.ios_per_s = 100;
  Disk disk(parameters, SEED);
  disk.submit({0, Kind::WRITE, 0, PAGE_BYTES}, 5);
  EXPECT_DOUBLE_EQ(5.01, disk.next_event_s());
  EXPECT_TRUE(disk.completed(5.009).empty());
  EXPECT_EQ(1u, disk.completed(5.011).size());
  EXPECT_EQ(std::numeric_limits<double>::infinity(), disk.next_event_s());
}

TEST(DiskTiming, NothingIsTransferredDuringAFlush) {
  Parameters parameters;
  parameters.ios_per_s = 100;
  parameters.flush_s = 0.5;
  parameters.latency_s = 0.03;
  Disk disk(parameters, SEED);
  disk.submit({0, Kind::FLUSH, 0, 0}, 0);
  disk.submit({1, Kind::READ, 0, PAGE_BYTES}, 0.1);
  const auto ended = disk.completed(FOREVER_S);
  ASSERT_EQ(2u, ended.size());
  // A flush has no latency beside its own time.
  EXPECT_DOUBLE_EQ(0.5, ended[0].time_s);
  // 0.5 + 1 / 100 + 0.03
  EXPECT_DOUBLE_EQ(0.54, ended[1].time_s);
}

/** A disk of 100,000 pages with seeks and rotations. */
Parameters spinning() {
  Parameters parameters;
  parameters.seek_s = 0.008;
  parameters.rotation_s = 0.006;
  parameters.size_bytes = 100'000 * PAGE_BYTES;
  return parameters;
}

TEST(DiskTiming, RandomIosTakeASeekAndHalfARotation) {
  Disk disk(spinning(), SEED);
  std::mt19937_64 random(2);
  double now_s = 0;
  constexpr uint64_t N = 10'000;
  for (uint64_t i = 0; i < N; ++i) {
    disk.submit({i, Kind::WRITE, random() % 100'000 * PAGE_BYTES, PAGE_BYTES},
                now_s);
    now_s = disk.next_event_s();
    ASSERT_EQ(1u, disk.completed(now_s).size());
  }
  // 0.008 + 0.006 / 2
  EXPECT_NEAR(0.011, now_s / N, 0.0002);
}

TEST(DiskTiming, SequentialIosInAQueueTakeNoRotation) {
  auto parameters = spinning();
  parameters.bytes_per_s = PAGE_BYTES * 10'000;
  const auto ends = ends_of_writes(parameters, 100);
  // The first waits for the rotation, and the others only for their bytes.
  EXPECT_NEAR(0.0099, ends[99] - ends[0], 1e-9);
}

TEST(DiskTiming, ASequentialIoThatComesLateWaitsForTheRotation) {
  Disk disk(spinning(), SEED);
  double positions_s = 0;
  constexpr uint64_t N = 1000;
  for (uint64_t i = 0; i < N; ++i) {
    const auto now_s = static_cast<double>(i);
    disk.submit({i, Kind::WRITE, i * PAGE_BYTES, PAGE_BYTES}, now_s);
    positions_s += disk.next_event_s() - now_s;
    disk.advance(now_s + 0.5);
    disk.completed(now_s + 0.5);
  }
  // 0.006 / 2
  EXPECT_NEAR(0.003, positions_s / N, 0.0002);
}

/** @return the IDs in the order in which requests end that arrive during the
first */
std::vector<uint64_t> order(const std::vector<Request> &requests) {
  Disk disk(spinning(), SEED);
  for (const Request &each : requests) {
    disk.submit(each, 0);
  }
  std::vector<uint64_t> result;
  for (const Completion &each : disk.completed(FOREVER_S)) {
    result.push_back(each.id);
  }
  return result;
}

TEST(DiskTiming, TheNearestRequestIsNext) {
  EXPECT_EQ((std::vector<uint64_t>{0, 2, 1}),
            order({{0, Kind::WRITE, 0, PAGE_BYTES},
                   {1, Kind::WRITE, 900 * PAGE_BYTES, PAGE_BYTES},
                   {2, Kind::WRITE, 10 * PAGE_BYTES, PAGE_BYTES}}));
}

TEST(DiskTiming, NoRequestPassesAFlush) {
  EXPECT_EQ((std::vector<uint64_t>{0, 1, 2, 3}),
            order({{0, Kind::WRITE, 0, PAGE_BYTES},
                   {1, Kind::WRITE, 900 * PAGE_BYTES, PAGE_BYTES},
                   {2, Kind::FLUSH, 0, 0},
                   {3, Kind::WRITE, 10 * PAGE_BYTES, PAGE_BYTES}}));
}

TEST(DiskTiming, ARequestBeyondTheCommandQueueIsNotChosen) {
  std::vector<Request> requests{{0, Kind::WRITE, 0, PAGE_BYTES}};
  for (uint64_t i = 1; i <= COMMAND_QUEUE_LENGTH; ++i) {
    requests.push_back({i, Kind::WRITE, i * 100 * PAGE_BYTES, PAGE_BYTES});
  }
  // Nearer than all, and the 33rd of those that wait.
  const uint64_t near = COMMAND_QUEUE_LENGTH + 1;
  requests.push_back({near, Kind::WRITE, 50 * PAGE_BYTES, PAGE_BYTES});
  const auto ended = order(requests);
  EXPECT_EQ(1u, ended[1]);
  EXPECT_EQ(near, ended[2]);
}

}  // namespace
}  // namespace timed_disk
