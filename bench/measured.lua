-- Measures any sysbench script: it records each transaction, and can generate arrivals at a given rate.
--
--   SPILLWAY_WORKLOAD=oltp_write_only sysbench bench/measured.lua --records=FOLDER [--arrivals=N ...] ... run
--
-- SPILLWAY_WORKLOAD names a script as sysbench would find it. The script runs unchanged, with its own options.
--
-- Records: one file per client, FOLDER/<number>, with 24 bytes for each transaction that ended: the time of its end
-- (8 bytes, microseconds of CLOCK_MONOTONIC), its response time (4 bytes, microseconds) and its kind (12 bytes: the
-- global transaction_kind after event(), padded with zeros). Each record is written at once, so that none is lost when
-- the load is killed while the server stalls.
--
-- Arrivals: without --arrivals each client begins a transaction when its last one has ended (closed loop), and a server
-- that stalls gets less load. With it, transactions are due at random times with that mean rate (Poisson), whatever the
-- server does (open loop), and a response time counts from when the transaction was due, as for a user. Each client has
-- its own due times. sysbench's --rate has one queue for all clients, ends the run when the queue holds 100,000
-- transactions, and does not tell how long each has waited.
-- With --burst-arrivals that rate applies in the last --burst-length seconds of every --burst-period seconds.
--
-- Waits: a script with think times in a closed loop calls the global client_waits(seconds) at the begin of event(). The
-- response time counts from the end of the wait. FOLDER/waits/<number> has the end of the wait (8 bytes, a double,
-- seconds of CLOCK_MONOTONIC), so that a waiting client does not look like one with a long transaction.

local ffi = require("ffi")

ffi.cdef [[
typedef struct { int64_t seconds, nanoseconds; } measured_time;
typedef struct { uint64_t end_us; uint32_t response_us; char kind[12]; } measured_record;
int measured_clock_gettime(int, measured_time *) __asm__("clock_gettime");
int measured_clock_nanosleep(int, int, const measured_time *, measured_time *) __asm__("clock_nanosleep");
int measured_creat(const char *, unsigned) __asm__("creat");
int64_t measured_write(int, const void *, size_t) __asm__("write");
int64_t measured_pwrite(int, const void *, size_t, int64_t) __asm__("pwrite");
]]

local CLOCK_MONOTONIC = 1
local TIMER_ABSTIME = 1
local RECORD_BYTES = ffi.sizeof("measured_record")

local workload = assert(os.getenv("SPILLWAY_WORKLOAD"), "SPILLWAY_WORKLOAD does not name a script")
if workload:find("/") then
   dofile(workload)
else
   require(workload)
end

local options = sysbench.cmdline.options or {}
options.records = {"folder for the clients' records", ""}
options.arrivals = {"transactions that are due in a second, of all clients; 0: a closed loop", 0.0}
options.burst_arrivals = {"the same during bursts; 0: no bursts", 0.0}
options.burst_period = {"seconds from the end of a burst to the end of the next", 30.0}
options.burst_length = {"seconds that a burst takes", 10.0}
sysbench.cmdline.options = options

local workload_thread_init, workload_event = thread_init, event
local file, due
local started = nil
local time, record = ffi.new("measured_time"), ffi.new("measured_record")

local function now()
   ffi.C.measured_clock_gettime(CLOCK_MONOTONIC, time)
   return tonumber(time.seconds) + tonumber(time.nanoseconds) / 1e9
end

local function sleep_until(when)
   time.seconds = math.floor(when)
   time.nanoseconds = math.floor((when - math.floor(when)) * 1e9)
   while ffi.C.measured_clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, time, nil) ~= 0 do end
end

-- Returns the rate of all clients at a time, and the time of its next change.
local function rate_at(when)
   local opt = sysbench.opt
   if opt.burst_arrivals == 0 then
      return opt.arrivals, math.huge
   end
   local begin = when - when % opt.burst_period
   local burst = begin + opt.burst_period - opt.burst_length
   if when < burst then
      return opt.arrivals, burst
   end
   return opt.burst_arrivals, begin + opt.burst_period
end

-- Returns when this client's next transaction is due. The number of arrivals until then, counted along a changing rate,
-- is exponentially distributed.
local function next_due(when)
   local arrivals = -math.log(sysbench.rand.uniform(1, 1000000000) / 1e9)
   while true do
      local rate, change = rate_at(when)
      rate = rate / sysbench.opt.threads
      if arrivals < rate * (change - when) then
         return when + arrivals / rate
      end
      arrivals = arrivals - rate * (change - when)
      -- Past the change, so that rounding cannot stop at it.
      when = change + 1e-6
   end
end

function thread_init(...)
   if workload_thread_init then
      workload_thread_init(...)
   end
   local path = string.format("%s/%d", sysbench.opt.records, sysbench.tid)
   -- 420 is 0644: all users can read, the owner can write.
   file = ffi.C.measured_creat(path, 420)
   assert(file >= 0, path .. " cannot be written")
   due = now()
end

local wakes = ffi.new("double[1]")
local waits_file

function client_waits(seconds)
   assert(sysbench.opt.arrivals == 0, "clients that wait of their own will follow no arrivals")
   if not waits_file then
      local path = string.format("%s/waits/%d", sysbench.opt.records, sysbench.tid)
      waits_file = ffi.C.measured_creat(path, 420)
      assert(waits_file >= 0, path .. " cannot be written")
   end
   wakes[0] = now() + seconds
   assert(ffi.C.measured_pwrite(waits_file, wakes, 8, 0) == 8, "the end of a wait cannot be written")
   sleep_until(wakes[0])
   started = now()
end

function event(...)
   -- After an error that it ignores, such as a deadlock, sysbench calls again: the same transaction continues.
   if not started then
      if sysbench.opt.arrivals > 0 then
         due = next_due(due)
         sleep_until(due)
         started = due
      else
         started = now()
      end
   end
   workload_event(...)
   local ended = now()
   record.end_us = ended * 1e6
   record.response_us = math.min((ended - started) * 1e6, 4294967295)
   ffi.fill(record.kind, 12)
   if transaction_kind then
      ffi.copy(record.kind, transaction_kind, math.min(#transaction_kind, 11))
   end
   assert(ffi.C.measured_write(file, record, RECORD_BYTES) == RECORD_BYTES, "a record cannot be written")
   started = nil
end
