/* Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE. */

#include "aio/policy/aio0depth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace {

using spw::aio_depth_can_grow;
using spw::Aio_depth_input;
using spw::Aio_depth_reason;
using spw::decide_aio_depth;

struct Case {
  const char *what;
  Aio_depth_input input;
  uint64_t depth;
  Aio_depth_reason reason;
};

TEST(Aio_depth, Decision) {
  constexpr auto AS_REQUESTED = Aio_depth_reason::AS_REQUESTED;
  constexpr auto LOWERED = Aio_depth_reason::LOWERED_TO_FIT;
  constexpr auto LIMIT_REACHED = Aio_depth_reason::LIMIT_REACHED;

  constexpr uint64_t LIMIT = 65536;
  /* 16 * 4096 = 65536. LIMIT / 17 = 3855, rounded down to 120 * 32.
  LIMIT / 129 = 508, rounded down to 15 * 32. (LIMIT - 60000) / 9 = 615, rounded
  down to 19 * 32. */
  const Case cases[] = {
      {"default", {256, 9, LIMIT, 0}, 256, AS_REQUESTED},
      {"exactly enough", {4096, 16, LIMIT, 0}, 4096, AS_REQUESTED},
      {"one context too many", {4096, 17, LIMIT, 0}, 120 * 32, LOWERED},
      {"largest of all", {4096, 129, LIMIT, 0}, 15 * 32, LOWERED},
      {"others use some", {1024, 9, LIMIT, 60000}, 19 * 32, LOWERED},
      {"smallest that fits", {4096, 129, 129 * 32, 0}, 32, LOWERED},
      {"smallest does not fit", {4096, 129, 129 * 32 - 1, 0}, 0, LIMIT_REACHED},
      {"nothing left", {32, 3, LIMIT, LIMIT}, 0, LIMIT_REACHED},
      {"limit lowered below use", {32, 3, 100, LIMIT}, 0, LIMIT_REACHED},
      {"no limit", {4096, 129, UINT64_MAX, 0}, 4096, AS_REQUESTED},
  };

  for (const Case &c : cases) {
    SCOPED_TRACE(c.what);
    const auto output = decide_aio_depth(c.input);
    EXPECT_EQ(c.depth, output.depth);
    EXPECT_EQ(c.reason, output.reason);
    EXPECT_EQ(c.input.requested * c.input.n_contexts, output.needed);
  }
}

/* For any request and any kernel figures: the depth fits and is a multiple of
the step, and the next larger depth does not fit or was not requested. */
TEST(Aio_depth, IsTheLargestThatFits) {
  std::mt19937_64 random(20261120);

  for (int i = 0; i < 100000; ++i) {
    Aio_depth_input input;
    input.requested = 32 * (1 + random() % 128);
    input.n_contexts = 2 + random() % 128;
    input.system_limit = random() % 1200000;
    input.system_used = random() % 1200000;

    const auto output = decide_aio_depth(input);
    const uint64_t available =
        input.system_limit - std::min(input.system_limit, input.system_used);

    ASSERT_EQ(0U, output.depth % spw::AIO_DEPTH_STEP);
    ASSERT_LE(output.depth, input.requested);
    ASSERT_LE(output.depth * input.n_contexts, available);
    if (output.depth != input.requested) {
      ASSERT_GT((output.depth + spw::AIO_DEPTH_STEP) * input.n_contexts,
                available);
    }
    ASSERT_EQ(output.depth == 0,
              output.reason == Aio_depth_reason::LIMIT_REACHED);
    ASSERT_EQ(output.depth == input.requested,
              output.reason == Aio_depth_reason::AS_REQUESTED);
  }
}

TEST(Aio_depth, CanGrowWhenOtherProcessesReleaseRequests) {
  /* 9 * 256 = 2304 of 64536 available requests: the depth is as requested, and
  cannot grow. */
  EXPECT_FALSE(aio_depth_can_grow({256, 9, 65536, 1000}));
  /* 5 * 1024 = 5120 would fit, but other processes leave 536. */
  EXPECT_TRUE(aio_depth_can_grow({1024, 5, 65536, 65000}));
  /* Available are 100, too few for 129 threads. In an idle system 480 fits:
  65536 / 129 = 508. */
  EXPECT_TRUE(aio_depth_can_grow({4096, 129, 65536, 65436}));
  /* No process holds any: the depth is 480 already. */
  EXPECT_FALSE(aio_depth_can_grow({4096, 129, 65536, 0}));
  /* (65536 - 129) / 129 = 507, rounded down to 480, as in an idle system. */
  EXPECT_FALSE(aio_depth_can_grow({4096, 129, 65536, 129}));
}

TEST(Aio_depth, HalvesInStepsDownToZero) {
  EXPECT_EQ(2048U, spw::halve_aio_depth(4096));
  /* 96 / 2 = 48, rounded down to a step of 32. */
  EXPECT_EQ(32U, spw::halve_aio_depth(96));
  EXPECT_EQ(32U, spw::halve_aio_depth(64));
  /* 32 / 2 = 16 is less than a step. */
  EXPECT_EQ(0U, spw::halve_aio_depth(32));
}

}  // namespace
