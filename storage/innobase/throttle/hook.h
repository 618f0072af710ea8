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

/** Delay the insert, update or delete of a row for a user, if the transaction
changes many rows. The caller holds no latch.
@param[in,out]  trx    the transaction; leaves InnoDB (srv0conc.h) meanwhile
@param[in]      table  the table */
void throttle_row_change(trx_t *trx, const dict_table_t *table);

}  // namespace spw

#endif /* throttle_hook_h */
