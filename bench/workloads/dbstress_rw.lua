-- dbstress_rw: the Read+Write test of dbSTRESS. Each client alternates read and write transactions.
--
-- Source: docs/origins.md, 2. It runs that test with 32 clients but describes neither tables nor statements. Its
-- author's post of 16 October 2009 describes a part: one write for each read (RW=1), no think time, two SELECTs in a
-- read; DELETE, INSERT and UPDATE in a write; 20 rows of HISTORY for each object. An OBJECT belongs to a SECTION, a
-- SECTION to a ZONE, and a row of HISTORY refers to a STAT. The database of that post is --objects=10000000.
--
--   read    SEL1: one OBJECT with its SECTION and ZONE. SEL2: the HISTORY of that OBJECT with each row's STAT, by date.
--   write   It updates the OBJECT, deletes the oldest row of its HISTORY, inserts a new row, and ends (END_DATE) the
--           row that was the newest. So the number of rows stays the same, and purge always has work.
--
-- One difference is deliberate: the original changes HISTORY in three autocommit statements, this script in one
-- transaction, so that "check" can verify the database at any time, also after a crash. Column sizes, indexes, the rows
-- of HISTORY that a write changes, and the percentages of hot objects and accesses are choices of this file.
--
--   sysbench bench/workloads/dbstress_rw.lua --mysql-socket=... --mysql-db=dbstress --threads=2 prepare
--   sysbench bench/workloads/dbstress_rw.lua --threads=32 --time=60 ... run
--   sysbench bench/workloads/dbstress_rw.lua ... check
--   sysbench bench/workloads/dbstress_rw.lua ... cleanup
--
-- "run" and "check" need the same --objects and --history_per_object as "prepare". "check" can run beside "run".

local ZONES = 10
local SECTIONS = 100
local STATS = 1000
local NOTE_BYTES = 100
local OBJECTS_PER_INSERT = 50

sysbench.cmdline.options = {
   objects = {"number of objects", 100000},
   history_per_object = {"rows of HISTORY of each object", 20},
   hot_objects_pct = {"share of the objects that are hot, in percent", 10},
   hot_access_pct = {"share of the transactions that choose among the hot objects only, in percent", 50}
}

local function connect()
   local connection = sysbench.sql.driver():connect()
   -- The tables' character set, so that the server has nothing to convert.
   connection:query("SET NAMES latin1")
   return connection
end

-- Tables and load ----------------------------------------------------------------------------------------------------

-- No foreign keys, as in the original: "check" verifies the references.
local TABLES = {
   {"ZONE", [[
      REF CHAR(3) NOT NULL PRIMARY KEY,
      NAME CHAR(30) NOT NULL,
      NOTE CHAR(100) NOT NULL]]},
   {"SECTION", [[
      REF CHAR(3) NOT NULL PRIMARY KEY,
      REF_ZONE CHAR(3) NOT NULL,
      NAME CHAR(30) NOT NULL,
      NOTE CHAR(100) NOT NULL,
      KEY REF_ZONE (REF_ZONE)]]},
   {"STAT", [[
      REF CHAR(3) NOT NULL PRIMARY KEY,
      NAME CHAR(30) NOT NULL,
      NOTE CHAR(100) NOT NULL]]},
   -- LAST_HORDER is the HORDER of the object's newest row of HISTORY.
   {"OBJECT", [[
      REF CHAR(10) NOT NULL PRIMARY KEY,
      REF_SECTION CHAR(3) NOT NULL,
      LAST_HORDER INT NOT NULL,
      CHANGED DATETIME NOT NULL,
      NAME CHAR(30) NOT NULL,
      NOTE CHAR(100) NOT NULL,
      KEY REF_SECTION (REF_SECTION)]]},
   -- Only the newest row of an object has no END_DATE.
   {"HISTORY", [[
      REF_OBJECT CHAR(10) NOT NULL,
      HORDER INT NOT NULL,
      REF_STAT CHAR(3) NOT NULL,
      BEGIN_DATE DATETIME NOT NULL,
      END_DATE DATETIME,
      NOTE CHAR(100) NOT NULL,
      PRIMARY KEY (REF_OBJECT, HORDER),
      KEY REF_STAT (REF_STAT)]]}
}

local function object_ref(number)
   return string.format("%010d", number)
end

local function small_ref(number)
   return string.format("%03d", number)
end

-- Returns a function that returns notes, cut out of one random text: to generate each note would be most of the
-- client's work.
local function note_source()
   local text = sysbench.rand.string(string.rep("@", 65536))
   return function()
      local first = sysbench.rand.uniform(1, 65536 - NOTE_BYTES)
      return text:sub(first, first + NOTE_BYTES - 1)
   end
end

local function load_small_tables(connection, note)
   local function fill(name, count, columns)
      local rows = {}
      for i = 0, count - 1 do
         rows[#rows + 1] = string.format("('%s',%s'%s %d','%s')", small_ref(i), columns(i), name, i, note())
      end
      connection:query("INSERT INTO " .. name .. " VALUES " .. table.concat(rows, ","))
   end
   local function none() return "" end

   fill("ZONE", ZONES, none)
   fill("SECTION", SECTIONS, function(i) return string.format("'%s',", small_ref(i % ZONES)) end)
   fill("STAT", STATS, none)
end

local function load_objects(connection, note, first, last)
   local rows_per_object = sysbench.opt.history_per_object
   local dates = {}
   for horder = 1, rows_per_object do
      dates[horder] = os.date("!'%Y-%m-%d %H:%M:%S'", 1230768000 + horder * 86400)
   end
   dates[rows_per_object + 1] = "NULL"

   for start = first, last, OBJECTS_PER_INSERT do
      local objects, history = {}, {}
      for number = start, math.min(start + OBJECTS_PER_INSERT - 1, last) do
         local ref = object_ref(number)
         objects[#objects + 1] = string.format("('%s','%s',%d,NOW(),'OBJECT %d','%s')", ref,
            small_ref(sysbench.rand.uniform(0, SECTIONS - 1)), rows_per_object, number, note())
         for horder = 1, rows_per_object do
            history[#history + 1] = string.format("('%s',%d,'%s',%s,%s,'%s')", ref, horder,
               small_ref(sysbench.rand.uniform(0, STATS - 1)), dates[horder], dates[horder + 1], note())
         end
      end
      connection:query("START TRANSACTION")
      connection:query("INSERT INTO OBJECT VALUES " .. table.concat(objects, ","))
      connection:query("INSERT INTO HISTORY VALUES " .. table.concat(history, ","))
      connection:query("COMMIT")
   end
end

-- Each thread loads its own range of the objects.
local function load()
   local connection = connect()
   -- Threads cannot wait for each other here, so each one creates all tables; the server creates each once.
   for _, t in ipairs(TABLES) do
      connection:query(string.format(
         "CREATE TABLE IF NOT EXISTS %s (%s) ENGINE=InnoDB DEFAULT CHARSET=latin1", t[1], t[2]))
   end

   local note = note_source()
   if sysbench.tid == 0 then
      load_small_tables(connection, note)
   end
   local objects, threads = sysbench.opt.objects, sysbench.opt.threads
   load_objects(connection, note, math.floor(objects * sysbench.tid / threads) + 1,
      math.floor(objects * (sysbench.tid + 1) / threads))
end

local function prepare_command()
   local ok, message = pcall(load)
   if not ok then
      -- sysbench only prints the error of a parallel command and exits with 0.
      io.stderr:write("prepare: " .. (type(message) == "table" and message.sql_errmsg or tostring(message)) .. "\n")
      os.exit(1)
   end
end

function cleanup()
   local connection = connect()
   for _, t in ipairs(TABLES) do
      connection:query("DROP TABLE IF EXISTS " .. t[1])
   end
end

-- Transactions -------------------------------------------------------------------------------------------------------

local connection, statements, parameters

-- The current transaction. After a failure these say which one to repeat.
local writing, unfinished = false, false

function thread_init()
   local type = sysbench.sql.type
   connection = connect()
   -- With other options than the load's, writes would leave rows without an object. The last object shows the
   -- difference.
   local rows = tonumber((connection:query_row(string.format(
      "SELECT COUNT(*) FROM HISTORY WHERE REF_OBJECT = '%s'", object_ref(sysbench.opt.objects)))))
   if rows ~= sysbench.opt.history_per_object then
      error("the database was loaded with other --objects or --history_per_object")
   end
   statements, parameters = {}, {}

   local function prepare(name, sql, ...)
      local statement = connection:prepare(sql)
      statements[name] = statement
      local bound = {}
      for i, parameter in ipairs({...}) do
         -- A parameter is client memory, and several statements can be bound to it.
         parameters[parameter] = parameters[parameter] or
            statement:bind_create(type.CHAR, parameter == "note" and NOTE_BYTES or 10)
         bound[i] = parameters[parameter]
      end
      statement:bind_param(unpack(bound))
   end

   prepare("sel1", [[
      SELECT O.REF, O.NAME, O.NOTE, O.CHANGED, S.REF, S.NAME, S.NOTE, Z.REF, Z.NAME, Z.NOTE
      FROM OBJECT O JOIN SECTION S ON S.REF = O.REF_SECTION JOIN ZONE Z ON Z.REF = S.REF_ZONE
      WHERE O.REF = ?]], "object")
   prepare("sel2", [[
      SELECT H.HORDER, H.BEGIN_DATE, H.END_DATE, H.NOTE, S.REF, S.NAME, S.NOTE
      FROM HISTORY H JOIN STAT S ON S.REF = H.REF_STAT
      WHERE H.REF_OBJECT = ? ORDER BY H.BEGIN_DATE]], "object")

   -- LAST_INSERT_ID passes the new HORDER to the next statements, so that the client need not read it. This statement
   -- is the first of the transaction: two writers of one object wait here and cannot deadlock later.
   prepare("touch", [[
      UPDATE OBJECT SET LAST_HORDER = LAST_INSERT_ID(LAST_HORDER + 1), CHANGED = NOW() WHERE REF = ?]], "object")
   prepare("delete", string.format(
      "DELETE FROM HISTORY WHERE REF_OBJECT = ? AND HORDER = LAST_INSERT_ID() - %d", sysbench.opt.history_per_object),
      "object")
   prepare("insert", "INSERT INTO HISTORY VALUES (?, LAST_INSERT_ID(), ?, NOW(), NULL, ?)", "object", "stat", "note")
   prepare("update",
      "UPDATE HISTORY SET END_DATE = NOW(), NOTE = ? WHERE REF_OBJECT = ? AND HORDER = LAST_INSERT_ID() - 1",
      "note", "object")
end

-- The hot objects are at equal distances over the whole table.
local function choose_object()
   local objects = sysbench.opt.objects
   local hot = math.max(1, math.floor(objects * sysbench.opt.hot_objects_pct / 100))
   if sysbench.rand.uniform(1, 100) <= sysbench.opt.hot_access_pct then
      return math.floor((sysbench.rand.uniform(1, hot) - 1) * objects / hot) + 1
   end
   return sysbench.rand.uniform(1, objects)
end

-- No START TRANSACTION and COMMIT: the reads need no common snapshot, and each would cost the client a round trip.
local function read_transaction()
   statements.sel1:execute()
   statements.sel2:execute()
end

local NOTE_PATTERN = string.rep("@", NOTE_BYTES)

local function write_transaction()
   parameters.stat:set(small_ref(sysbench.rand.uniform(0, STATS - 1)))
   parameters.note:set_rand_str(NOTE_PATTERN)
   connection:query("START TRANSACTION")
   statements.touch:execute()
   statements.delete:execute()
   statements.insert:execute()
   statements.update:execute()
   connection:query("COMMIT")
end

function event()
   if unfinished then
      -- The last call ended with an error that sysbench ignores (deadlock, lock wait timeout): sysbench calls event()
      -- again for the same event. After a timeout the transaction is still open with part of its changes.
      connection:query("ROLLBACK")
   else
      parameters.object:set(object_ref(choose_object()))
      unfinished = true
   end

   -- bench/measured.lua records this kind.
   transaction_kind = writing and "write" or "read"
   if writing then
      write_transaction()
   else
      read_transaction()
   end
   unfinished = false
   writing = not writing
end

function thread_done()
   for _, statement in pairs(statements) do
      statement:close()
   end
   connection:disconnect()
end

-- Check --------------------------------------------------------------------------------------------------------------

local function check_command()
   local connection = connect()
   local objects, rows_per_object = sysbench.opt.objects, sysbench.opt.history_per_object
   local ok = true

   local function number(sql)
      return tonumber((connection:query_row(sql)))
   end
   local function violations(what, count)
      print(string.format("%-66s %10d%s", what .. ":", count, count == 0 and "" or "   VIOLATED"))
      ok = ok and count == 0
   end

   local found = number("SELECT COUNT(*) FROM OBJECT")
   print(string.format("%d objects (%d expected), %d rows of HISTORY, %d of STAT", found, objects,
      number("SELECT COUNT(*) FROM HISTORY"), number("SELECT COUNT(*) FROM STAT")))
   violations("objects too few or too many", math.abs(found - objects))
   violations(string.format("objects without exactly %d rows of HISTORY", rows_per_object), number(string.format([[
      SELECT COUNT(*) FROM (
         SELECT O.REF FROM OBJECT O LEFT JOIN HISTORY H ON H.REF_OBJECT = O.REF
         GROUP BY O.REF HAVING COUNT(H.HORDER) <> %d) V]], rows_per_object)))
   -- This also finds a partial write transaction that leaves the number of rows right.
   violations("objects whose HISTORY is not what their last transaction left", number(string.format([[
      SELECT COUNT(*) FROM (
         SELECT O.REF FROM OBJECT O JOIN HISTORY H ON H.REF_OBJECT = O.REF
         GROUP BY O.REF, O.LAST_HORDER
         HAVING MAX(H.HORDER) <> O.LAST_HORDER OR MIN(H.HORDER) <> O.LAST_HORDER - %d + 1
            OR SUM((H.END_DATE IS NULL) <> (H.HORDER = O.LAST_HORDER)) <> 0) V]], rows_per_object)))
   violations("rows of HISTORY whose OBJECT does not exist", number([[
      SELECT COUNT(*) FROM HISTORY H LEFT JOIN OBJECT O ON O.REF = H.REF_OBJECT WHERE O.REF IS NULL]]))
   violations("rows of HISTORY whose STAT does not exist", number([[
      SELECT COUNT(*) FROM HISTORY H LEFT JOIN STAT S ON S.REF = H.REF_STAT WHERE S.REF IS NULL]]))

   print(ok and "check: passed" or "check: FAILED")
   return ok
end

sysbench.cmdline.commands = {
   prepare = {prepare_command, sysbench.cmdline.PARALLEL_COMMAND},
   check = {check_command}
}
