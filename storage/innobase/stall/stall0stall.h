/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file stall/stall0stall.h
Statistics of stalls, and the variable that selects those for the error log. All
counters begin at server start. Any thread reads them without a latch. */

#ifndef stall0stall_h
#define stall0stall_h

#include <cstdint>
#include <cstdio>

#include "stall/hook.h"
#include "stall/policy/stall0stats.h"

class THD;

namespace spw {

/** innodb_stall_log_threshold_ms: stalls longer than this are written to the
error log: milliseconds; 0: none is. Changed at run time without a latch. */
extern unsigned long stall_log_threshold_ms;

/** Names of a kind of stall. */
struct Stall_names {
  Stall kind;

  /** In SHOW ENGINE INNODB STATUS: at most 22 characters. */
  const char *row;

  /** In INFORMATION_SCHEMA.INNODB_STALLS; with "Innodb_stall_", the begin of
  the names of its status variables. */
  const char *name;

  /** Its stalls, in the error log. */
  const char *phrase;
};

/** @param[in]  kind  the kind of stall
@return its names */
const Stall_names &stall_names(Stall kind);

/** @param[in]  thd  a session, or nullptr
@return whether it works for a user: for a client, an event or replication */
bool is_session(const THD *thd);

/** @param[in]  kind  the kind of stall
@return its statistics */
Stall_summary stall_summary(Stall kind);

/** @param[in]  summary  statistics of one kind of stall
@return seconds since the last stall ended, or since server start if none has */
uint64_t stall_since_last_s(const Stall_summary &summary);

/** Print the table of stalls of SHOW ENGINE INNODB STATUS.
@param[in,out]  file  where to print */
void stall_print(FILE *file);

}  // namespace spw

#endif /* stall0stall_h */
