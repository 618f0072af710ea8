/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file throttle/hook.h
What upstream's files call of the throttle of sessions that change rows:
throttle0session.cc. */

#ifndef throttle_hook_h
#define throttle_hook_h

struct dict_table_t;
struct trx_t;

namespace spw {

/** A statement is about to use a table, and may change rows of it: if its
transaction has changed and locked none, wait until the redo log may be filled
further, see innodb_ahead_flushing_max_delay_us. No latch is held. Changes of
the schema mysql and of temporary tables do not wait, nor do statements that
lock whole tables.
@param[in]  trx    the transaction
@param[in]  table  the table */
void redo_delay_statement(const trx_t *trx, const dict_table_t *table);

/** A row is about to be inserted, updated or deleted for a user, and no latch
is held: the same, where the transaction changes many.
@param[in,out]  trx    the transaction; leaves InnoDB (srv0conc.h) if it waits
@param[in]      table  the table */
void redo_delay_change(trx_t *trx, const dict_table_t *table);

}  // namespace spw

#endif /* throttle_hook_h */
