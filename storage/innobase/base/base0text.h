/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file base/base0text.h
Quantities in readable units, for SHOW ENGINE INNODB STATUS and messages. */

#ifndef base0text_h
#define base0text_h

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

namespace spw {

/** @param[in]  bytes  a number of bytes
@return with one decimal, in the largest binary unit up to TiB of which it has
at least one: "51.0 MiB"; below 1 KiB in whole bytes */
inline std::string bytes_text(uint64_t bytes) {
  constexpr const char *UNITS[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  auto n = static_cast<double>(bytes);
  size_t unit = 0;
  while (n >= 1024.0 && unit + 1 < sizeof(UNITS) / sizeof(*UNITS)) {
    n /= 1024.0;
    ++unit;
  }
  char text[64];
  snprintf(text, sizeof(text), unit == 0 ? "%.0f %s" : "%.1f %s", n,
           UNITS[unit]);
  return text;
}

/** @param[in]  us  microseconds
@return seconds with one decimal: "85.6 s" */
inline std::string seconds_text(uint64_t us) {
  char text[64];
  snprintf(text, sizeof(text), "%.1f s", static_cast<double>(us) / 1e6);
  return text;
}

}  // namespace spw

#endif /* base0text_h */
