/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file throttle/hook.h
Hook interface for upstream's files: the write throttle (throttle0session.cc).
*/

#ifndef throttle_hook_h
#define throttle_hook_h

#include <cstdint>

#include "univ.i"

class THD;
struct dict_table_t;
struct trx_t;

namespace spw {

/** Delay a statement that is about to use a table, and may change rows of it,
until more redo may be generated (innodb_ahead_flushing_max_delay_us). It is
delayed only if its transaction has changed and locked no rows. Not delayed:
changes of the schema mysql and of temporary tables, and statements that lock
whole tables. The caller holds no latch.
@param[in]  trx    the transaction
@param[in]  table  the table */
void throttle_statement(const trx_t *trx, const dict_table_t *table);

/** A statement has ended its use of tables: charge the session for its redo
without a delay, so that the time until its next statement counts. Not charged:
changes of the data dictionary.
@param[in]  thd  the session */
void throttle_statement_ended(const THD *thd);

/** Delay the insert, update or delete of a row for a user, if the transaction
has generated much redo. Not delayed: a transaction that holds an AUTO-INC lock.
The caller holds no latch.
@param[in,out]  trx    the transaction; leaves InnoDB (srv0conc.h) meanwhile
@param[in]      table  the table */
void throttle_row_change(trx_t *trx, const dict_table_t *table);

/** The session of this thread ends: charge it for what it was not charged yet.
The next session of its account that begins waits for what this one has not
waited for.
@param[in]  thd  the session. Nothing is done if it ends an attachable
                 transaction only */
void throttle_session_ended(const THD *thd);

/** A mini-transaction of this thread has written redo. The caller may hold any
latch.
@param[in]  bytes  its redo, without the headers of log blocks */
void redo_generated(ulint bytes);

/** While it lives, the session is not charged for the redo of its thread: a
rollback, or in group commit the commits of other sessions. */
class Uncharged_redo {
 public:
  /** Not charged in any case. */
  Uncharged_redo();

  /** @param[in]  trx  the transaction that the thread commits: charged if it
  is of the thread's own session */
  explicit Uncharged_redo(const trx_t *trx);

  ~Uncharged_redo();
  Uncharged_redo(const Uncharged_redo &) = delete;
  Uncharged_redo &operator=(const Uncharged_redo &) = delete;

 private:
  const bool m_is_charged;
  const uint64_t m_generated;
};

}  // namespace spw

#endif /* throttle_hook_h */
