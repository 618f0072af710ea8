-- insert12: each transaction is one INSERT into each of 12 tables.
--
-- Source: docs/origins.md, 3: START TRANSACTION, one INSERT into each of 12 business tables, COMMIT, from 32 clients.
-- It does not show the schema. These tables have what business tables have: a growing key, a key for lookups, an
-- amount, a time, and some text.
--
--   sysbench bench/workloads/insert12.lua --mysql-socket=... --mysql-db=insert12 prepare
--   sysbench bench/workloads/insert12.lua --threads=32 --time=60 ... run
--   sysbench bench/workloads/insert12.lua ... check
--   sysbench bench/workloads/insert12.lua ... cleanup
--
-- check fails if the tables differ in their number of rows: then a transaction is there only in part.

local TABLES = 12

sysbench.cmdline.options = {
   text_bytes = {"bytes of text in each row", 160},
   autoextend_size = {"AUTOEXTEND_SIZE of the tables, as 64M", ""},
   extent_size = {"size to which the tables' files are extended before the load, as 256M: fork only", ""}
}

function prepare()
   local connection = sysbench.sql.driver():connect()
   local autoextend = ""
   if sysbench.opt.autoextend_size ~= "" then
      autoextend = " AUTOEXTEND_SIZE = " .. sysbench.opt.autoextend_size
   end
   for i = 1, TABLES do
      connection:query(string.format([[
         CREATE TABLE IF NOT EXISTS trade%d (
            id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
            account INT UNSIGNED NOT NULL,
            amount DECIMAL(12,2) NOT NULL,
            created TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
            text VARCHAR(2000) NOT NULL,
            KEY account (account)
         ) ENGINE=InnoDB%s]], i, autoextend))
      if sysbench.opt.extent_size ~= "" then
         connection:query(string.format("ALTER TABLESPACE `%s/trade%d` SET EXTENT_SIZE = %s", sysbench.opt.mysql_db, i,
                                        sysbench.opt.extent_size))
      end
   end
end

function cleanup()
   local connection = sysbench.sql.driver():connect()
   for i = 1, TABLES do
      connection:query(string.format("DROP TABLE IF EXISTS trade%d", i))
   end
end

local connection, pattern

function thread_init()
   connection = sysbench.sql.driver():connect()
   pattern = string.rep("@", sysbench.opt.text_bytes)
end

function event()
   connection:query("START TRANSACTION")
   for i = 1, TABLES do
      connection:query(string.format(
         "INSERT INTO trade%d (account, amount, text) VALUES (%d, %d.%02d, '%s')", i,
         sysbench.rand.uniform(1, 10000000), sysbench.rand.uniform(0, 99999), sysbench.rand.uniform(0, 99),
         sysbench.rand.string(pattern)))
   end
   connection:query("COMMIT")
end

function thread_done()
   connection:disconnect()
end

local function check()
   local connection = sysbench.sql.driver():connect()
   connection:query("START TRANSACTION WITH CONSISTENT SNAPSHOT")
   local rows, is_consistent = {}, true
   for i = 1, TABLES do
      rows[i] = connection:query_row(string.format("SELECT COUNT(*) FROM trade%d", i))
      is_consistent = is_consistent and rows[i] == rows[1]
   end
   connection:query("COMMIT")
   print("rows of the tables: " .. table.concat(rows, ", "))
   -- If a command returns false, sysbench exits with an error.
   return is_consistent
end

sysbench.cmdline.commands = {
   check = {check}
}
