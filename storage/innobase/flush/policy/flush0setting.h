/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file flush/policy/flush0setting.h
Which variables of flushing have no effect beside the others. */

#ifndef flush0setting_h
#define flush0setting_h

#include <cstddef>

namespace spw {

/** The variables. */
enum class Flush_variable {
  ADAPTIVE_FLUSHING_METHOD,
  AHEAD_FLUSHING,
  AHEAD_FLUSHING_AGE_PCT,
  AHEAD_FLUSHING_DEVICE,
  AHEAD_FLUSHING_DIRTY_PCT,
  AHEAD_FLUSHING_INTERVAL_MS,
  AHEAD_FLUSHING_IO_PCT,
  AHEAD_FLUSHING_MAX_DELAY_US,
  N
};

/** @param[in]  variable  a variable
@return its name */
constexpr const char *flush_variable_name(Flush_variable variable) {
  constexpr const char *NAMES[] = {
      "innodb_adaptive_flushing_method", "innodb_ahead_flushing",
      "innodb_ahead_flushing_age_pct",   "innodb_ahead_flushing_device",
      "innodb_ahead_flushing_dirty_pct", "innodb_ahead_flushing_interval_ms",
      "innodb_ahead_flushing_io_pct",    "innodb_ahead_flushing_max_delay_us"};
  static_assert(sizeof(NAMES) / sizeof(*NAMES) ==
                static_cast<size_t>(Flush_variable::N));
  return NAMES[static_cast<size_t>(variable)];
}

/** What decides whether a variable has an effect. */
struct Flush_switches {
  /** innodb_read_only. */
  bool is_read_only;

  /** innodb_ahead_flushing. */
  bool is_ahead;

  /** innodb_adaptive_flushing. */
  bool is_adaptive;

  /** innodb_adaptive_flushing_method is native. */
  bool is_native;
};

/** @param[in]  variable  a variable with another value than its default
@param[in]  switches  the switches
@return why it has no effect, to be read after "has no effect"; nullptr if it
has one */
constexpr const char *flush_no_effect_reason(Flush_variable variable,
                                             const Flush_switches &switches) {
  if (switches.is_read_only) {
    return "with innodb_read_only";
  }
  switch (variable) {
    case Flush_variable::AHEAD_FLUSHING:
      return nullptr;
    case Flush_variable::ADAPTIVE_FLUSHING_METHOD:
      return switches.is_adaptive ? nullptr
                                  : "while innodb_adaptive_flushing is OFF";
    case Flush_variable::AHEAD_FLUSHING_INTERVAL_MS:
      if (switches.is_adaptive && !switches.is_native) {
        /* The method has rounds, too. */
        return nullptr;
      }
      [[fallthrough]];
    default:
      return switches.is_ahead ? nullptr : "while innodb_ahead_flushing is OFF";
  }
}

}  // namespace spw

#endif /* flush0setting_h */
