-- Transfers between accounts, with a journal: every effect of a transaction can be verified after a crash.
--
--   sysbench powercut/transfers.lua --acknowledged=FOLDER --mysql-... --threads=N run
--
-- A client's transfers are numbered without a gap. FOLDER/<client> has the number of its last committed transfer (a
-- double, 8 bytes): the client writes it each time COMMIT has returned, by write(), so that it outlives the client.
-- Invariants, which verdict.py checks:
--   * the sum of the balances is 0, and each account's balance is what the journal says;
--   * a client's journal has the transfers 1 to n, where n is the acknowledged number or one more.
-- Rows change their length, one transaction in ten is rolled back, and rows of several pages come and go in documents:
-- so pages are split and merged, freed and reused. Each client re-creates a table now and then, with 4 rows in one
-- statement: made_<client> or, while that is dropped, made_<client>_new. So there are new, renamed and dropped files.

local ffi = require("ffi")

ffi.cdef [[
int transfers_creat(const char *, unsigned) __asm__("creat");
int64_t transfers_pwrite(int, const void *, size_t, int64_t) __asm__("pwrite");
]]

sysbench.cmdline.options = {
   accounts = {"number of accounts", 20000},
   compressed = {"whether a table has ROW_FORMAT=COMPRESSED", true},
   acknowledged = {"folder for what was acknowledged", ""},
}

local TABLES = {
   {"accounts", ""},
   {"accounts_compressed", "ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=4"},
}

function prepare()
   local connection = sysbench.sql.driver():connect()
   for _, each in ipairs(TABLES) do
      connection:query(([[CREATE TABLE %s (id INT PRIMARY KEY, balance BIGINT NOT NULL, note VARCHAR(1000) NOT NULL,
                          KEY (balance)) %s]]):format(each[1], sysbench.opt.compressed and each[2] or ""))
      connection:bulk_insert_init(("INSERT INTO %s VALUES"):format(each[1]))
      for id = 1, sysbench.opt.accounts do
         connection:bulk_insert_next(("(%d, 0, '%s')"):format(id, ("."):rep(200)))
      end
      connection:bulk_insert_done()
   end
   connection:query([[CREATE TABLE journal (client INT, number BIGINT, place TINYINT, payer INT, payee INT, amount INT,
                      PRIMARY KEY (client, number))]])
   connection:query("CREATE TABLE documents (client INT, number BIGINT, content LONGBLOB, PRIMARY KEY (client, number))")
end

local connection, client, number, file
local value = ffi.new("double[1]")

function thread_init()
   connection = sysbench.sql.driver():connect()
   client = sysbench.tid + 1
   number = tonumber(connection:query_row(("SELECT IFNULL(MAX(number), 0) FROM journal WHERE client = %d"):format(client)))
   -- A client killed between DROP and RENAME leaves only made_N_new, which renew() would drop first.
   local name = ("made_%d"):format(client)
   local found = connection:query_row(([[SELECT GROUP_CONCAT(table_name) FROM information_schema.tables
                                         WHERE table_schema = DATABASE() AND table_name IN ('%s', '%s_new')]]):format(name, name))
   if found == name .. "_new" then
      connection:query(("RENAME TABLE %s_new TO %s"):format(name, name))
   end
   local path = ("%s/%d"):format(sysbench.opt.acknowledged, client)
   file = ffi.C.transfers_creat(path, 384)
   assert(file >= 0, path .. " cannot be created")
   acknowledge()
end

function acknowledge()
   value[0] = number
   assert(ffi.C.transfers_pwrite(file, value, 8, 0) == 8)
end

function renew()
   local name = ("made_%d"):format(client)
   connection:query(("DROP TABLE IF EXISTS %s_new"):format(name))
   connection:query(("CREATE TABLE %s_new (id INT PRIMARY KEY, content LONGTEXT NOT NULL)"):format(name))
   local content = ("REPEAT('%d', %d)"):format(number % 10, sysbench.rand.uniform(1, 30000))
   connection:query(("INSERT INTO %s_new VALUES (1, %s), (2, %s), (3, %s), (4, %s)"):format(
      name, content, content, content, content))
   connection:query(("DROP TABLE IF EXISTS %s"):format(name))
   connection:query(("RENAME TABLE %s_new TO %s"):format(name, name))
end

function event()
   if number % 50 == 0 then
      renew()
   end
   local place = sysbench.rand.uniform(1, #TABLES)
   local name = TABLES[place][1]
   local payer = sysbench.rand.uniform(1, sysbench.opt.accounts)
   local payee = sysbench.rand.uniform(1, sysbench.opt.accounts)
   local amount = sysbench.rand.uniform(1, 1000)
   local update = "UPDATE %s SET balance = balance + %d, note = REPEAT('%s', %d) WHERE id = %d"
   connection:query("BEGIN")
   -- In the order of their ids, which prevents deadlocks.
   local first, second = {payer, -amount}, {payee, amount}
   if payer > payee then
      first, second = second, first
   end
   for _, each in ipairs({first, second}) do
      local letter = string.char(sysbench.rand.uniform(97, 122))
      connection:query(update:format(name, each[2], letter, sysbench.rand.uniform(1, 1000), each[1]))
   end
   connection:query(("INSERT INTO journal VALUES (%d, %d, %d, %d, %d, %d)"):format(
      client, number + 1, place, payer, payee, amount))
   if number % 20 == 0 then
      connection:query(("INSERT INTO documents VALUES (%d, %d, REPEAT('%d', %d))"):format(
         client, number + 1, number % 10, sysbench.rand.uniform(1, 60000)))
      connection:query(("DELETE FROM documents WHERE client = %d AND number <= %d"):format(client, number - 100))
   end
   if sysbench.rand.uniform(1, 10) == 1 then
      connection:query("ROLLBACK")
   else
      connection:query("COMMIT")
      number = number + 1
      acknowledge()
   end
end

function cleanup()
   local connection = sysbench.sql.driver():connect()
   for _, name in ipairs({"accounts", "accounts_compressed", "journal", "documents"}) do
      connection:query("DROP TABLE IF EXISTS " .. name)
   end
   for client = 1, sysbench.opt.threads do
      connection:query(("DROP TABLE IF EXISTS made_%d, made_%d_new"):format(client, client))
   end
end
