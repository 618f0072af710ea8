/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

#include "flush/policy/flush0setting.h"

#include <gtest/gtest.h>

namespace spw {
namespace {

constexpr Flush_switches DEFAULTS{.is_read_only = false,
                                  .is_ahead = false,
                                  .is_adaptive = true,
                                  .is_native = true};

TEST(FlushSetting, NoEffectWhileAheadFlushingIsOff) {
  constexpr auto variable = Flush_variable::AHEAD_FLUSHING_AGE_PCT;
  EXPECT_STREQ("while innodb_ahead_flushing is OFF",
               flush_no_effect_reason(variable, DEFAULTS));
  auto switches = DEFAULTS;
  switches.is_ahead = true;
  EXPECT_EQ(nullptr, flush_no_effect_reason(variable, switches));
}

TEST(FlushSetting, AheadFlushingItselfHasAnEffect) {
  EXPECT_EQ(nullptr,
            flush_no_effect_reason(Flush_variable::AHEAD_FLUSHING, DEFAULTS));
}

TEST(FlushSetting, NoVariableHasAnEffectWithReadOnly) {
  auto switches = DEFAULTS;
  switches.is_read_only = true;
  switches.is_ahead = true;
  for (int i = 0; i < static_cast<int>(Flush_variable::N); ++i) {
    EXPECT_STREQ(
        "with innodb_read_only",
        flush_no_effect_reason(static_cast<Flush_variable>(i), switches));
  }
}

TEST(FlushSetting, MethodNeedsAdaptiveFlushing) {
  constexpr auto variable = Flush_variable::ADAPTIVE_FLUSHING_METHOD;
  EXPECT_EQ(nullptr, flush_no_effect_reason(variable, DEFAULTS));
  auto switches = DEFAULTS;
  switches.is_adaptive = false;
  EXPECT_STREQ("while innodb_adaptive_flushing is OFF",
               flush_no_effect_reason(variable, switches));
}

TEST(FlushSetting, IntervalHasAnEffectOnMethodsThatAreNotNative) {
  constexpr auto variable = Flush_variable::AHEAD_FLUSHING_INTERVAL_MS;
  auto switches = DEFAULTS;
  EXPECT_STREQ("while innodb_ahead_flushing is OFF",
               flush_no_effect_reason(variable, switches));
  switches.is_native = false;
  EXPECT_EQ(nullptr, flush_no_effect_reason(variable, switches));
  switches.is_adaptive = false;
  EXPECT_NE(nullptr, flush_no_effect_reason(variable, switches));
}

}  // namespace
}  // namespace spw
