/*****************************************************************************

Copyright (c) 2026, the Spillway authors.

This program is free software; you can redistribute it and/or modify it under
the terms of the GNU General Public License, version 2.0, as published by the
Free Software Foundation. See the file LICENSE.

*****************************************************************************/

/** @file aio/policy/aio0depth.h
Decides how many asynchronous I/Os each I/O thread may have pending. */

#ifndef aio0depth_h
#define aio0depth_h

#include <cstdint>

namespace spw {

/** Range and step of innodb_aio_pending_ios_per_thread. Source of the range:
docs/origins.md, 3. The default is the constant that it replaces, 8 *
OS_AIO_N_PENDING_IOS_PER_THREAD. */
constexpr uint32_t AIO_DEPTH_MIN = 32;
constexpr uint32_t AIO_DEPTH_MAX = 4096;
constexpr uint32_t AIO_DEPTH_STEP = 32;
constexpr uint32_t AIO_DEPTH_DEFAULT = 256;

/** Max number of completions that one io_getevents() call asks for. A thread
with more of them calls again. It is the depth of stock, so that the cost of a
call does not grow with the depth: the array of events is cleared before each
call. */
constexpr uint32_t AIO_REAP_MAX = AIO_DEPTH_DEFAULT;

/** Input of decide_aio_depth(). */
struct Aio_depth_input {
  /** innodb_aio_pending_ios_per_thread: AIO_DEPTH_MIN to AIO_DEPTH_MAX. */
  uint64_t requested;

  /** Number of AIO contexts, one per I/O thread: 1 or more. */
  uint64_t n_contexts;

  /** fs.aio-max-nr: max number of requests that all contexts of all processes
  can reserve. */
  uint64_t system_limit;

  /** fs.aio-nr: the number reserved now. */
  uint64_t system_used;
};

/** Reason for the depth. */
enum class Aio_depth_reason {
  /** The requested depth fits. */
  AS_REQUESTED,
  /** The depth is the largest that fits. */
  LOWERED_TO_FIT,
  /** Not even AIO_DEPTH_MIN fits. */
  LIMIT_REACHED
};

/** Result of decide_aio_depth(). */
struct Aio_depth_output {
  /** Pending I/Os per thread; 0 with LIMIT_REACHED. */
  uint64_t depth;

  /** Number of requests to reserve for the requested depth. */
  uint64_t needed;

  /** Number of requests that can still be reserved. */
  uint64_t available;

  Aio_depth_reason reason;
};

/** Decide how many I/Os each thread may have pending.

The kernel counts, for each context, the number that io_setup() was called with.
Source: io_setup(2); Documentation/admin-guide/sysctl/fs.rst, "aio-nr &
aio-max-nr".

@param[in]  input  the requested depth, and the kernel's figures
@return the depth and the reason for it */
constexpr Aio_depth_output decide_aio_depth(const Aio_depth_input &input) {
  Aio_depth_output output{};

  output.needed = input.requested * input.n_contexts;
  output.available = input.system_used < input.system_limit
                         ? input.system_limit - input.system_used
                         : 0;

  if (output.needed <= output.available) {
    output.depth = input.requested;
    output.reason = Aio_depth_reason::AS_REQUESTED;
    return output;
  }

  output.depth = output.available / input.n_contexts;
  output.depth -= output.depth % AIO_DEPTH_STEP;
  output.reason = output.depth == 0 ? Aio_depth_reason::LIMIT_REACHED
                                    : Aio_depth_reason::LOWERED_TO_FIT;
  return output;
}

/** @param[in]  input  the requested depth, and the kernel's figures
@return whether the depth would be larger if other processes released their
requests: then it is worth waiting for them */
constexpr bool aio_depth_can_grow(const Aio_depth_input &input) {
  Aio_depth_input alone = input;
  alone.system_used = 0;
  return decide_aio_depth(alone).depth > decide_aio_depth(input).depth;
}

/** The depth to try after io_setup() failed for a reason that the kernel's
figures do not explain: half as much, since the limit is unknown.
@param[in]  failed  the depth that failed, a multiple of AIO_DEPTH_STEP
@return a multiple of AIO_DEPTH_STEP; 0 if there is no smaller depth */
constexpr uint64_t halve_aio_depth(uint64_t failed) {
  return failed / 2 - failed / 2 % AIO_DEPTH_STEP;
}

}  // namespace spw

#endif /* aio0depth_h */
