-- tpcc: the order-entry workload of the TPC-C specification, revision 5.11, without its terminals.
--
-- Source: the specification; comments name the clause of each rule. Some rules do not hold here, so the result is not a
-- TPC-C result and must not be called tpmC:
--   - without --think_times there are no keying and think times (5.2.5): each client starts its next transaction at
--     once, as in tpcc-mysql, so that a few clients keep a server busy;
--   - there is no terminal: the client reads what the specification displays, and drops it;
--   - a delivery is not queued (2.7.2): its client waits for it.
-- There are no foreign keys. The tables are the specification's (1.3), with their primary keys and the two indexes that
-- the transactions need for lookups.
--
--   sysbench bench/workloads/tpcc.lua --warehouses=10 --threads=4 --mysql-socket=... --mysql-db=tpcc prepare
--   sysbench bench/workloads/tpcc.lua --warehouses=10 --threads=32 --time=60 ... run
--   sysbench bench/workloads/tpcc.lua --warehouses=10 ... check
--   sysbench bench/workloads/tpcc.lua ... cleanup
--
-- prepare needs an empty database and divides the warehouses among the threads. check fails if the database is not
-- consistent (3.3.2); it may run at any time.

local ffi = require("ffi")

ffi.cdef [[ int tpcc_usleep(unsigned) __asm__("usleep"); ]]

sysbench.cmdline.options = {
   warehouses = {"number of warehouses", 1},
   roam = {"draw the warehouse of each transaction at random, instead of one home warehouse for each client", false},
   think_times = {"wait before and after each transaction as those who key and think; 10 clients a warehouse then", false}
}

local uniform = sysbench.rand.uniform
local format, concat = string.format, table.concat

-- 1.2.1, 4.3.3.1: rows for each warehouse or district; the items are shared by all warehouses.
local ITEMS = 100000
local DISTRICTS = 10
local CUSTOMERS = 3000
local ORDERS = 3000
-- The first undelivered order. It and all later ones have a row in new_order.
local FIRST_NEW_ORDER = 2101

-- 2.1.6: the constants C of NURand. They are literals, because each thread has its own Lua state and all must agree.
-- 2.1.6.1: C_LAST differs between load and run, by 65 to 119, but neither by 96 nor by 112.
local C_LAST_LOAD = 123
local C_LAST_RUN = 223
local C_CUSTOMER = 519
local C_ITEM = 4211

-- 2.1.6: a number from first to last, with a non-uniform distribution.
local function nurand(a, c, first, last)
   return (bit.bor(uniform(0, a), uniform(first, last)) + c) % (last - first + 1) + first
end

-- 4.3.2.3: a last name is three syllables, one for each digit of a number up to 999.
local SYLLABLES = {[0] = "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"}

local function last_name(number)
   return SYLLABLES[math.floor(number / 100)] .. SYLLABLES[math.floor(number / 10) % 10] .. SYLLABLES[number % 10]
end

local function warehouses()
   local n = sysbench.opt.warehouses
   if n < 1 or n % 1 ~= 0 then
      error("--warehouses must be a whole number, and at least 1", 0)
   end
   return n
end

local function connect()
   return sysbench.sql.driver():connect()
end

----------------------------------------------------------------------------------------------------------------------
-- Tables and their first rows
----------------------------------------------------------------------------------------------------------------------

-- 1.3. The strings are ASCII, so latin1 stores a byte for each character on every server.
local TABLES = {
   {"warehouse", [[
      w_id SMALLINT UNSIGNED NOT NULL,
      w_name VARCHAR(10) NOT NULL,
      w_street_1 VARCHAR(20) NOT NULL,
      w_street_2 VARCHAR(20) NOT NULL,
      w_city VARCHAR(20) NOT NULL,
      w_state CHAR(2) NOT NULL,
      w_zip CHAR(9) NOT NULL,
      w_tax DECIMAL(4,4) NOT NULL,
      w_ytd DECIMAL(12,2) NOT NULL,
      PRIMARY KEY (w_id)]]},
   {"district", [[
      d_id TINYINT UNSIGNED NOT NULL,
      d_w_id SMALLINT UNSIGNED NOT NULL,
      d_name VARCHAR(10) NOT NULL,
      d_street_1 VARCHAR(20) NOT NULL,
      d_street_2 VARCHAR(20) NOT NULL,
      d_city VARCHAR(20) NOT NULL,
      d_state CHAR(2) NOT NULL,
      d_zip CHAR(9) NOT NULL,
      d_tax DECIMAL(4,4) NOT NULL,
      d_ytd DECIMAL(12,2) NOT NULL,
      d_next_o_id INT UNSIGNED NOT NULL,
      PRIMARY KEY (d_w_id, d_id)]]},
   {"customer", [[
      c_id SMALLINT UNSIGNED NOT NULL,
      c_d_id TINYINT UNSIGNED NOT NULL,
      c_w_id SMALLINT UNSIGNED NOT NULL,
      c_first VARCHAR(16) NOT NULL,
      c_middle CHAR(2) NOT NULL,
      c_last VARCHAR(16) NOT NULL,
      c_street_1 VARCHAR(20) NOT NULL,
      c_street_2 VARCHAR(20) NOT NULL,
      c_city VARCHAR(20) NOT NULL,
      c_state CHAR(2) NOT NULL,
      c_zip CHAR(9) NOT NULL,
      c_phone CHAR(16) NOT NULL,
      c_since DATETIME NOT NULL,
      c_credit CHAR(2) NOT NULL,
      c_credit_lim DECIMAL(12,2) NOT NULL,
      c_discount DECIMAL(4,4) NOT NULL,
      c_balance DECIMAL(12,2) NOT NULL,
      c_ytd_payment DECIMAL(12,2) NOT NULL,
      c_payment_cnt INT UNSIGNED NOT NULL,
      c_delivery_cnt INT UNSIGNED NOT NULL,
      c_data VARCHAR(500) NOT NULL,
      PRIMARY KEY (c_w_id, c_d_id, c_id),
      KEY customer_name (c_w_id, c_d_id, c_last, c_first)]]},
   -- 1.3.1 gives HISTORY no primary key. InnoDB would add a hidden one, but group replication rejects a table without
   -- its own key, and a replica searches such a table for each row that it changes.
   {"history", [[
      h_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
      h_c_id SMALLINT UNSIGNED NOT NULL,
      h_c_d_id TINYINT UNSIGNED NOT NULL,
      h_c_w_id SMALLINT UNSIGNED NOT NULL,
      h_d_id TINYINT UNSIGNED NOT NULL,
      h_w_id SMALLINT UNSIGNED NOT NULL,
      h_date DATETIME NOT NULL,
      h_amount DECIMAL(6,2) NOT NULL,
      h_data VARCHAR(24) NOT NULL,
      PRIMARY KEY (h_id)]]},
   {"new_order", [[
      no_o_id INT UNSIGNED NOT NULL,
      no_d_id TINYINT UNSIGNED NOT NULL,
      no_w_id SMALLINT UNSIGNED NOT NULL,
      PRIMARY KEY (no_w_id, no_d_id, no_o_id)]]},
   {"orders", [[
      o_id INT UNSIGNED NOT NULL,
      o_d_id TINYINT UNSIGNED NOT NULL,
      o_w_id SMALLINT UNSIGNED NOT NULL,
      o_c_id SMALLINT UNSIGNED NOT NULL,
      o_entry_d DATETIME NOT NULL,
      o_carrier_id TINYINT UNSIGNED,
      o_ol_cnt TINYINT UNSIGNED NOT NULL,
      o_all_local TINYINT UNSIGNED NOT NULL,
      PRIMARY KEY (o_w_id, o_d_id, o_id),
      KEY orders_customer (o_w_id, o_d_id, o_c_id, o_id)]]},
   {"order_line", [[
      ol_o_id INT UNSIGNED NOT NULL,
      ol_d_id TINYINT UNSIGNED NOT NULL,
      ol_w_id SMALLINT UNSIGNED NOT NULL,
      ol_number TINYINT UNSIGNED NOT NULL,
      ol_i_id INT UNSIGNED NOT NULL,
      ol_supply_w_id SMALLINT UNSIGNED NOT NULL,
      ol_delivery_d DATETIME,
      ol_quantity TINYINT UNSIGNED NOT NULL,
      ol_amount DECIMAL(6,2) NOT NULL,
      ol_dist_info CHAR(24) NOT NULL,
      PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)]]},
   {"item", [[
      i_id INT UNSIGNED NOT NULL,
      i_im_id SMALLINT UNSIGNED NOT NULL,
      i_name VARCHAR(24) NOT NULL,
      i_price DECIMAL(5,2) NOT NULL,
      i_data VARCHAR(50) NOT NULL,
      PRIMARY KEY (i_id)]]},
   {"stock", [[
      s_i_id INT UNSIGNED NOT NULL,
      s_w_id SMALLINT UNSIGNED NOT NULL,
      s_quantity SMALLINT NOT NULL,
      s_dist_01 CHAR(24) NOT NULL,
      s_dist_02 CHAR(24) NOT NULL,
      s_dist_03 CHAR(24) NOT NULL,
      s_dist_04 CHAR(24) NOT NULL,
      s_dist_05 CHAR(24) NOT NULL,
      s_dist_06 CHAR(24) NOT NULL,
      s_dist_07 CHAR(24) NOT NULL,
      s_dist_08 CHAR(24) NOT NULL,
      s_dist_09 CHAR(24) NOT NULL,
      s_dist_10 CHAR(24) NOT NULL,
      s_ytd INT UNSIGNED NOT NULL,
      s_order_cnt INT UNSIGNED NOT NULL,
      s_remote_cnt INT UNSIGNED NOT NULL,
      s_data VARCHAR(50) NOT NULL,
      PRIMARY KEY (s_w_id, s_i_id)]]}
}

-- 4.3.2.2: random strings of letters and digits. prepare generates mostly these, so that one random number gives two
-- characters.
local CHARACTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
local PAIRS = #CHARACTERS * #CHARACTERS
local pairs_of_characters
local text = ffi.new("uint16_t[256]")

local function fill_pairs()
   pairs_of_characters = ffi.new("uint16_t[?]", PAIRS)
   for i = 0, PAIRS - 1 do
      local first, second = math.floor(i / #CHARACTERS) + 1, i % #CHARACTERS + 1
      pairs_of_characters[i] = CHARACTERS:byte(first) * 256 + CHARACTERS:byte(second)
   end
end

local function a_string(shortest, longest)
   local length = uniform(shortest, longest)
   for i = 0, (length - 1) / 2 do
      text[i] = pairs_of_characters[uniform(0, PAIRS - 1)]
   end
   return ffi.string(text, length)
end

-- 4.3.3.1: I_DATA and S_DATA; 10 % contain "ORIGINAL".
local function data_string()
   local data = a_string(26, 50)
   if uniform(1, 10) == 1 then
      local before = uniform(0, #data - 8)
      data = data:sub(1, before) .. "ORIGINAL" .. data:sub(before + 9)
   end
   return data
end

-- Two streets, city, state and zip code (4.3.2.7), as part of a row.
local function address()
   return format("'%s','%s','%s','%s','%04d11111'", a_string(10, 20), a_string(10, 20), a_string(10, 20),
                 a_string(2, 2), uniform(0, 9999))
end

-- The client sends 500 rows per statement, enough to make the cost of a statement small, and commits after 20
-- statements: a larger transaction loads no faster and is harder to replicate.
local ROWS = 500
local STATEMENTS = 20

local function new_loader(connection)
   local loader, statements, buffers = {}, 0, {}

   local function send(buffer)
      if buffer.n == 0 then
         return
      end
      if statements == 0 then
         connection:query("START TRANSACTION")
      end
      connection:query(buffer.head .. concat(buffer, ",", 1, buffer.n))
      buffer.n = 0
      statements = statements + 1
      if statements == STATEMENTS then
         connection:query("COMMIT")
         statements = 0
      end
   end

   -- Returns a function that takes a row of the table as text. Columns are in the table's order unless name lists them.
   function loader.table(name)
      local buffer = {head = "INSERT INTO " .. name .. " VALUES ", n = 0}
      buffers[#buffers + 1] = buffer
      return function(row)
         buffer.n = buffer.n + 1
         buffer[buffer.n] = row
         if buffer.n == ROWS then
            send(buffer)
         end
      end
   end

   function loader.finish()
      for _, buffer in ipairs(buffers) do
         send(buffer)
      end
      if statements > 0 then
         connection:query("COMMIT")
         statements = 0
      end
   end

   return loader
end

local function load_items(loader)
   local item = loader.table("item")
   for i = 1, ITEMS do
      item(format("(%d,%d,'%s',%.2f,'%s')", i, uniform(1, 10000), a_string(14, 24), uniform(100, 10000) / 100,
                  data_string()))
   end
   loader.finish()
end

local function load_stock(loader, w)
   local stock = loader.table("stock")
   for i = 1, ITEMS do
      stock(format("(%d,%d,%d,'%s','%s','%s','%s','%s','%s','%s','%s','%s','%s',0,0,0,'%s')", i, w, uniform(10, 100),
                   a_string(24, 24), a_string(24, 24), a_string(24, 24), a_string(24, 24), a_string(24, 24),
                   a_string(24, 24), a_string(24, 24), a_string(24, 24), a_string(24, 24), a_string(24, 24),
                   data_string()))
   end
   loader.finish()
end

local function load_customers(loader, w, d, now)
   local customer = loader.table("customer")
   local history = loader.table("history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)")
   for c = 1, CUSTOMERS do
      -- 4.3.3.1: the first 1000 customers have each name once, so that each name has a customer.
      local name = last_name(c <= 1000 and c - 1 or nurand(255, C_LAST_LOAD, 0, 999))
      customer(format("(%d,%d,%d,'%s','OE','%s',%s,'%08d%08d','%s','%s',50000,%.4f,-10,10,1,0,'%s')", c, d, w,
                      a_string(8, 16), name, address(), uniform(0, 99999999), uniform(0, 99999999), now,
                      uniform(1, 10) == 1 and "BC" or "GC", uniform(0, 5000) / 10000, a_string(300, 500)))
      history(format("(%d,%d,%d,%d,%d,'%s',10,'%s')", c, d, w, d, w, now, a_string(12, 24)))
   end
   loader.finish()
end

local function load_orders(loader, w, d, now)
   local orders, order_line, new_order = loader.table("orders"), loader.table("order_line"), loader.table("new_order")
   -- 4.3.3.1: O_C_ID is a permutation, so each customer has one order.
   local customers = {}
   for c = 1, CUSTOMERS do
      customers[c] = c
   end
   for c = CUSTOMERS, 2, -1 do
      local other = uniform(1, c)
      customers[c], customers[other] = customers[other], customers[c]
   end
   for o = 1, ORDERS do
      local delivered = o < FIRST_NEW_ORDER
      local lines = uniform(5, 15)
      orders(format("(%d,%d,%d,%d,'%s',%s,%d,1)", o, d, w, customers[o], now, delivered and uniform(1, 10) or "NULL",
                    lines))
      for line = 1, lines do
         if delivered then
            order_line(format("(%d,%d,%d,%d,%d,%d,'%s',5,0,'%s')", o, d, w, line, uniform(1, ITEMS), w, now,
                              a_string(24, 24)))
         else
            order_line(format("(%d,%d,%d,%d,%d,%d,NULL,5,%.2f,'%s')", o, d, w, line, uniform(1, ITEMS), w,
                              uniform(1, 999999) / 100, a_string(24, 24)))
         end
      end
      if not delivered then
         new_order(format("(%d,%d,%d)", o, d, w))
      end
   end
   loader.finish()
end

local function load_warehouse(connection, w)
   local now = os.date("%Y-%m-%d %H:%M:%S")
   connection:query(format("INSERT INTO warehouse VALUES (%d,'%s',%s,%.4f,300000)", w, a_string(6, 10), address(),
                           uniform(0, 2000) / 10000))
   for d = 1, DISTRICTS do
      connection:query(format("INSERT INTO district VALUES (%d,%d,'%s',%s,%.4f,30000,%d)", d, w, a_string(6, 10),
                              address(), uniform(0, 2000) / 10000, ORDERS + 1))
   end
   load_stock(new_loader(connection), w)
   for d = 1, DISTRICTS do
      load_customers(new_loader(connection), w, d, now)
      load_orders(new_loader(connection), w, d, now)
   end
end

local function load_all()
   local count, threads = warehouses(), sysbench.opt.threads
   local connection = connect()
   fill_pairs()
   -- Each thread creates the tables, and the server creates each once: no thread has to wait for another.
   for _, definition in ipairs(TABLES) do
      connection:query(format("CREATE TABLE IF NOT EXISTS %s (%s) ENGINE=InnoDB DEFAULT CHARSET=latin1", definition[1],
                              definition[2]))
   end
   if sysbench.tid == 0 then
      load_items(new_loader(connection))
   end
   for w = sysbench.tid + 1, count, threads do
      load_warehouse(connection, w)
      print(format("warehouse %d of %d is loaded", w, count))
   end
   connection:disconnect()
end

-- sysbench drops the error of a command that runs in several threads, and exits with status 0. An error for which it
-- would repeat an event is a table; there are no events here.
local function prepare()
   local ok, message = pcall(load_all)
   if not ok then
      io.stderr:write("FATAL: prepare: ", type(message) == "table" and message.sql_errmsg or message, "\n")
      os.exit(1)
   end
end

function cleanup()
   local connection = connect()
   for _, definition in ipairs(TABLES) do
      connection:query("DROP TABLE IF EXISTS " .. definition[1])
   end
end

----------------------------------------------------------------------------------------------------------------------
-- The transactions
----------------------------------------------------------------------------------------------------------------------

-- Each transaction has a function that draws its inputs and a function that executes it. If the server rolls one back
-- as a deadlock victim, the client repeats it with the same inputs.
--
-- Queries are text, because sysbench cannot read the rows of a prepared statement. To compensate, one query covers all
-- lines of an order and all districts of a delivery; it leaves the same rows as one query for each.

local connection, warehouse_count, home_warehouse, home_district

local function draw_warehouse()
   return sysbench.opt.roam and uniform(1, warehouse_count) or home_warehouse
end

-- Draws one of the other warehouses, with equal probability.
local function draw_remote(w)
   local other = uniform(1, warehouse_count - 1)
   return other < w and other or other + 1
end

-- 2.5.1.2, 2.6.1.2: 60 % of customers are looked up by their last name, the others by their number.
local function draw_customer(input)
   if uniform(1, 100) <= 60 then
      input.c_last = last_name(nurand(255, C_LAST_RUN, 0, 999))
   else
      input.c_id = nurand(1023, C_CUSTOMER, 1, CUSTOMERS)
   end
end

-- 2.5.2.2, 2.6.2.2: the middle customer of that name, ordered by first name, rounded up. No lock is needed, because no
-- transaction changes a name.
local function find_customer(w, d, input)
   if input.c_id then
      return input.c_id
   end
   local rows = connection:query(format(
      "SELECT c_id FROM customer WHERE c_w_id=%d AND c_d_id=%d AND c_last='%s' ORDER BY c_first", w, d, input.c_last))
   local row
   for _ = 1, math.ceil(rows.nrows / 2) do
      row = rows:fetch_row()
   end
   return row[1]
end

local function by_supply(a, b)
   if a.supply_w ~= b.supply_w then
      return a.supply_w < b.supply_w
   end
   return a.item < b.item
end

-- 2.4.1
local function draw_new_order()
   local w = draw_warehouse()
   local lines = {}
   local input = {
      w = w, d = uniform(1, DISTRICTS), c = nurand(1023, C_CUSTOMER, 1, CUSTOMERS), count = uniform(5, 15),
      all_local = 1, lines = lines
   }
   -- 2.4.1.4: in 1 % of the orders the last item does not exist, and the order is rolled back.
   input.unused_item = uniform(1, 100) == 1
   for i = 1, input.unused_item and input.count - 1 or input.count do
      local line = {item = nurand(8191, C_ITEM, 1, ITEMS), supply_w = w, quantity = uniform(1, 10)}
      -- 2.4.1.5: 1 % of the items come from another warehouse.
      if warehouse_count > 1 and uniform(1, 100) == 1 then
         line.supply_w = draw_remote(w)
         input.all_local = 0
      end
      lines[i] = line
   end
   -- All orders lock rows of stock in this order, so that they cannot deadlock.
   table.sort(lines, by_supply)
   return input
end

-- 2.4.2.2: the stock of the lines from first to last, which have the same supply warehouse.
local function take_stock(input, first, last)
   local lines, supply_w = input.lines, input.lines[first].supply_w
   local ids, stock = {}, {}
   for i = first, last do
      local item = lines[i].item
      if not stock[item] then
         stock[item] = {}
         ids[#ids + 1] = item
      end
   end
   local where = format("s_w_id=%d AND s_i_id IN (%s)", supply_w, concat(ids, ","))
   local rows = connection:query(format(
      "SELECT s_i_id, s_quantity, s_dist_%02d, s_data FROM stock WHERE %s FOR UPDATE", input.d, where))
   for _ = 1, rows.nrows do
      local row = rows:fetch_row()
      local item = stock[tonumber(row[1])]
      item.quantity, item.dist_info, item.taken, item.orders = tonumber(row[2]), row[3], 0, 0
   end
   -- An item may be in an order several times; each line counts.
   for i = first, last do
      local line = lines[i]
      local item = stock[line.item]
      item.quantity = item.quantity - line.quantity
      if item.quantity < 10 then
         item.quantity = item.quantity + 91
      end
      item.taken = item.taken + line.quantity
      item.orders = item.orders + 1
      line.dist_info = item.dist_info
   end
   local quantity, taken, orders = {}, {}, {}
   for i, id in ipairs(ids) do
      local item = stock[id]
      quantity[i] = format("WHEN %d THEN %d", id, item.quantity)
      taken[i] = format("WHEN %d THEN %d", id, item.taken)
      if item.orders > 1 then
         orders[#orders + 1] = format("WHEN %d THEN %d", id, item.orders)
      end
   end
   local added = #orders == 0 and "1" or format("CASE s_i_id %s ELSE 1 END", concat(orders, " "))
   connection:query(format("UPDATE stock SET s_quantity=CASE s_i_id %s END, s_ytd=s_ytd+CASE s_i_id %s END, "
                           .. "s_order_cnt=s_order_cnt+%s%s WHERE %s",
                           concat(quantity, " "), concat(taken, " "), added,
                           supply_w ~= input.w and ", s_remote_cnt=s_remote_cnt+" .. added or "", where))
end

-- 2.4.2
local function new_order(input)
   local w, d, lines = input.w, input.d, input.lines
   connection:query("START TRANSACTION")
   connection:query(format("SELECT w_tax, c_discount, c_last, c_credit FROM warehouse, customer "
                           .. "WHERE w_id=%d AND c_w_id=%d AND c_d_id=%d AND c_id=%d", w, w, d, input.c))
   local o = connection:query_row(format(
      "SELECT d_next_o_id, d_tax FROM district WHERE d_w_id=%d AND d_id=%d FOR UPDATE", w, d))
   connection:query(format("UPDATE district SET d_next_o_id=d_next_o_id+1 WHERE d_w_id=%d AND d_id=%d", w, d))
   connection:query(format("INSERT INTO orders VALUES (%s,%d,%d,%d,NOW(),NULL,%d,%d)", o, d, w, input.c, input.count,
                           input.all_local))
   connection:query(format("INSERT INTO new_order VALUES (%s,%d,%d)", o, d, w))

   -- 2.4.2.3: all existing items are processed, as if the client did not know yet that the last one does not exist.
   local ids, prices = {}, {}
   for i = 1, #lines do
      ids[i] = lines[i].item
   end
   if input.unused_item then
      ids[#ids + 1] = ITEMS + 1
   end
   local rows = connection:query(format("SELECT i_id, i_price, i_name, i_data FROM item WHERE i_id IN (%s)",
                                        concat(ids, ",")))
   for _ = 1, rows.nrows do
      local row = rows:fetch_row()
      prices[tonumber(row[1])] = tonumber(row[2])
   end

   local first = 1
   for i = 1, #lines do
      if i == #lines or lines[i + 1].supply_w ~= lines[i].supply_w then
         take_stock(input, first, i)
         first = i + 1
      end
   end
   local values = {}
   for i = 1, #lines do
      local line = lines[i]
      values[i] = format("(%s,%d,%d,%d,%d,%d,NULL,%d,%.2f,'%s')", o, d, w, i, line.item, line.supply_w, line.quantity,
                         line.quantity * prices[line.item], line.dist_info)
   end
   connection:query("INSERT INTO order_line VALUES " .. concat(values, ","))
   connection:query(input.unused_item and "ROLLBACK" or "COMMIT")
end

-- 2.5.1
local function draw_payment()
   local w, d = draw_warehouse(), uniform(1, DISTRICTS)
   local input = {w = w, d = d, c_w = w, c_d = d, amount = uniform(100, 500000) / 100}
   -- 2.5.1.2: 15 % of customers pay at a warehouse that is not their own.
   if warehouse_count > 1 and uniform(1, 100) > 85 then
      input.c_w, input.c_d = draw_remote(w), uniform(1, DISTRICTS)
   end
   draw_customer(input)
   return input
end

-- 2.5.2
local function payment(input)
   local w, d, c_w, c_d, amount = input.w, input.d, input.c_w, input.c_d, input.amount
   connection:query("START TRANSACTION")
   -- The customer's name is looked up before the lock on the warehouse, for which all payments wait.
   local c = find_customer(c_w, c_d, input)
   connection:query(format("UPDATE warehouse SET w_ytd=w_ytd+%.2f WHERE w_id=%d", amount, w))
   connection:query(format("UPDATE district SET d_ytd=d_ytd+%.2f WHERE d_w_id=%d AND d_id=%d", amount, w, d))
   local w_name, d_name = connection:query_row(format(
      "SELECT w_name, d_name, w_street_1, w_street_2, w_city, w_state, w_zip, d_street_1, d_street_2, d_city, d_state, "
      .. "d_zip FROM warehouse, district WHERE w_id=%d AND d_w_id=%d AND d_id=%d", w, w, d))

   local customer = format("c_w_id=%d AND c_d_id=%d AND c_id=%s", c_w, c_d, c)
   local credit = connection:query_row(format(
      "SELECT c_credit, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, "
      .. "c_credit_lim, c_discount, c_balance, IF(c_credit='BC', c_data, '') FROM customer WHERE %s FOR UPDATE",
      customer))
   -- 2.5.2.2: for a customer with bad credit, the payment is noted at the front of C_DATA, which is cut at the end.
   local note = ""
   if credit == "BC" then
      note = format(", c_data=LEFT(CONCAT('%s %d %d %d %d %.2f|', c_data), 500)", c, c_d, c_w, d, w, amount)
   end
   connection:query(format("UPDATE customer SET c_balance=c_balance-%.2f, c_ytd_payment=c_ytd_payment+%.2f, "
                           .. "c_payment_cnt=c_payment_cnt+1%s WHERE %s", amount, amount, note, customer))
   connection:query(format("INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) "
                           .. "VALUES (%s,%d,%d,%d,%d,NOW(),%.2f,'%s    %s')", c, c_d, c_w, d, w, amount, w_name,
                           d_name))
   connection:query("COMMIT")
end

-- 2.6.1
local function draw_order_status()
   local input = {w = draw_warehouse(), d = uniform(1, DISTRICTS)}
   draw_customer(input)
   return input
end

-- 2.6.2
local function order_status(input)
   local w, d = input.w, input.d
   connection:query("START TRANSACTION")
   local c = find_customer(w, d, input)
   connection:query(format("SELECT c_balance, c_first, c_middle, c_last FROM customer "
                           .. "WHERE c_w_id=%d AND c_d_id=%d AND c_id=%s", w, d, c))
   local o = connection:query_row(format("SELECT o_id, o_entry_d, o_carrier_id FROM orders "
                                         .. "WHERE o_w_id=%d AND o_d_id=%d AND o_c_id=%s ORDER BY o_id DESC LIMIT 1",
                                         w, d, c))
   connection:query(format("SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line "
                           .. "WHERE ol_w_id=%d AND ol_d_id=%d AND ol_o_id=%s", w, d, o))
   connection:query("COMMIT")
end

-- 2.7.1
local function draw_delivery()
   return {w = draw_warehouse(), carrier = uniform(1, 10)}
end

-- The condition for the rows of one order or customer of each district in numbers.
local function of_districts(prefix, column, w, numbers)
   local parts = {}
   for d = 1, DISTRICTS do
      if numbers[d] then
         parts[#parts + 1] = format("(%s_d_id=%d AND %s=%s)", prefix, d, column, numbers[d])
      end
   end
   return format("%s_w_id=%d AND (%s)", prefix, w, concat(parts, " OR "))
end

-- The second column of the rows, by the district in the first one.
local function by_district(query)
   local rows, values = connection:query(query), {}
   for _ = 1, rows.nrows do
      local row = rows:fetch_row()
      values[tonumber(row[1])] = row[2]
   end
   return values
end

-- 2.7.4: locks the oldest new order of each district. It first reads the key, and then locks it by its full value: a
-- locking read of the lowest key would also lock the gap in front of it, where the previous district inserts its new
-- orders. Numbers only grow, so an order that is still there when it is locked is still the oldest. If it is gone,
-- another delivery took it, and the next one is locked with its gap.
local function lock_oldest(w)
   -- A subquery per district ends at its first row. MIN() with GROUP BY would read all rows, and so would the subquery
   -- with an ORDER BY of less than the whole key.
   local oldest = by_district(format(
      "SELECT d_id, (SELECT no_o_id FROM new_order WHERE no_w_id=d_w_id AND no_d_id=d_id "
      .. "ORDER BY no_w_id, no_d_id, no_o_id LIMIT 1) FROM district WHERE d_w_id=%d", w))
   if not next(oldest) then
      return oldest
   end
   local locked = by_district(format("SELECT no_d_id, no_o_id FROM new_order WHERE %s FOR UPDATE",
                                     of_districts("no", "no_o_id", w, oldest)))
   for d = 1, DISTRICTS do
      if oldest[d] and not locked[d] then
         locked[d] = connection:query_row(format("SELECT no_o_id FROM new_order WHERE no_w_id=%d AND no_d_id=%d "
                                                 .. "ORDER BY no_o_id LIMIT 1 FOR UPDATE", w, d))
      end
   end
   return locked
end

-- 2.7.4: a district without a new order is skipped.
local function delivery(input)
   local w = input.w
   connection:query("START TRANSACTION")
   local oldest = lock_oldest(w)
   if next(oldest) then
      connection:query("DELETE FROM new_order WHERE " .. of_districts("no", "no_o_id", w, oldest))
      local orders = of_districts("o", "o_id", w, oldest)
      local customers = by_district(format("SELECT o_d_id, o_c_id FROM orders WHERE %s FOR UPDATE", orders))
      connection:query(format("UPDATE orders SET o_carrier_id=%d WHERE %s", input.carrier, orders))
      local lines = of_districts("ol", "ol_o_id", w, oldest)
      connection:query("UPDATE order_line SET ol_delivery_d=NOW() WHERE " .. lines)
      local amounts = by_district(format("SELECT ol_d_id, SUM(ol_amount) FROM order_line WHERE %s GROUP BY ol_d_id",
                                         lines))
      local sums = {}
      for d = 1, DISTRICTS do
         if amounts[d] then
            sums[#sums + 1] = format("WHEN %d THEN %s", d, amounts[d])
         end
      end
      connection:query(format("UPDATE customer SET c_balance=c_balance+CASE c_d_id %s END, "
                              .. "c_delivery_cnt=c_delivery_cnt+1 WHERE %s",
                              concat(sums, " "), of_districts("c", "c_id", w, customers)))
   end
   connection:query("COMMIT")
end

-- 2.8.1: the district is the terminal's and constant.
local function draw_stock_level()
   return {w = draw_warehouse(), d = home_district, threshold = uniform(10, 20)}
end

-- 2.8.2
local function stock_level(input)
   local w, d = input.w, input.d
   connection:query("START TRANSACTION")
   local next_o = tonumber((connection:query_row(format(
      "SELECT d_next_o_id FROM district WHERE d_w_id=%d AND d_id=%d", w, d))))
   connection:query(format("SELECT COUNT(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id=%d AND ol_d_id=%d "
                           .. "AND ol_o_id BETWEEN %d AND %d AND s_w_id=%d AND s_i_id=ol_i_id AND s_quantity<%d",
                           w, d, next_o - 20, next_o - 1, w, input.threshold))
   connection:query("COMMIT")
end

-- 5.2.5.7: keying times, and means of think times.
-- 5.2.4.2: each client draws its transactions from a shuffled deck of these 23 cards, and shuffles again at its end. So
-- the fractions are exact: 10/23 of new-order and payment each, and 1/23 of each other one.
local TRANSACTIONS = {
   {name = "new_order", cards = 10, draw = draw_new_order, execute = new_order, keying_s = 18, think_s = 12},
   {name = "payment", cards = 10, draw = draw_payment, execute = payment, keying_s = 3, think_s = 12},
   {name = "order_stat", cards = 1, draw = draw_order_status, execute = order_status, keying_s = 2, think_s = 10},
   {name = "delivery", cards = 1, draw = draw_delivery, execute = delivery, keying_s = 2, think_s = 5},
   {name = "stock_level", cards = 1, draw = draw_stock_level, execute = stock_level, keying_s = 2, think_s = 5}
}

-- 5.2.5.4: a think time is exponentially distributed, with a maximum of 10 times its mean.
local function draw_think_s(mean_s)
   return math.min(-math.log(uniform(1, 1000000000) / 1e9), 10) * mean_s
end

-- bench/measured.lua has a function for waits, because they are not part of the response time.
local function wait(seconds)
   if client_waits then
      client_waits(seconds)
   else
      ffi.C.tpcc_usleep(seconds * 1e6)
   end
end

local deck, card = {}, 0

local function draw_transaction()
   if card == 0 then
      card = #deck
      for i = card, 2, -1 do
         local other = uniform(1, i)
         deck[i], deck[other] = deck[other], deck[i]
      end
   end
   local transaction = deck[card]
   card = card - 1
   return transaction
end

function thread_init()
   warehouse_count = warehouses()
   -- 2.4.1.1, 2.8.1.1: a client is a terminal with a constant home warehouse and a district in it. With fewer clients
   -- than warehouses, the other warehouses have no terminal and only remote accesses; --roam is for that case.
   home_warehouse = sysbench.tid % warehouse_count + 1
   home_district = math.floor(sysbench.tid / warehouse_count) % DISTRICTS + 1
   for _, transaction in ipairs(TRANSACTIONS) do
      for _ = 1, transaction.cards do
         deck[#deck + 1] = transaction
      end
   end
   connection = connect()
end

-- The current transaction and its inputs. They stay until it is done: sysbench repeats an event after an error of
-- --mysql-ignore-errors, and a new draw would favour transactions that are seldom rolled back.
local transaction, input
-- The think time after the client's last transaction.
local think_s = 0

-- Executes one transaction and sets the global transaction_kind for bench/measured.lua. It cannot return the kind,
-- because sysbench ends the thread of an event that returns a value. A new-order that is rolled back for its unused
-- item counts as done.
function event()
   if not transaction then
      transaction = draw_transaction()
      if sysbench.opt.think_times then
         wait(think_s + transaction.keying_s)
         think_s = draw_think_s(transaction.think_s)
      end
      input = transaction.draw()
   end
   local ok, message = pcall(transaction.execute, input)
   if not ok then
      -- A lock wait timeout undoes only its statement, and the next START TRANSACTION would commit the earlier ones.
      -- For an error that is a string sysbench does not repeat the event; the end of the connection rolls back.
      if type(message) == "table" then
         connection:query("ROLLBACK")
      end
      error(message, 0)
   end
   transaction_kind = transaction.name
   transaction, input = nil, nil
end

function thread_done()
   connection:disconnect()
end

----------------------------------------------------------------------------------------------------------------------
-- Consistency
----------------------------------------------------------------------------------------------------------------------

-- 3.3.2.1 to 3.3.2.4: for each condition a query for the rows that break it, and the names of its columns. By 3.3.2.2
-- and 3.3.2.3 a district without new orders has no max(NO_O_ID) to compare. One without orders or lines has 0 of them.
local CONDITIONS = {
   {{"W_ID", "W_YTD", "sum(D_YTD)"}, [[
      SELECT w_id, w_ytd, total
      FROM warehouse LEFT JOIN (SELECT d_w_id, SUM(d_ytd) AS total FROM district GROUP BY d_w_id) AS d ON d_w_id=w_id
      WHERE NOT (w_ytd <=> total) ORDER BY w_id LIMIT 1]]},
   {{"D_W_ID", "D_ID", "D_NEXT_O_ID", "max(O_ID)", "max(NO_O_ID)"}, [[
      SELECT d_w_id, d_id, d_next_o_id, last_order, last_new_order
      FROM district
      LEFT JOIN (SELECT o_w_id, o_d_id, MAX(o_id) AS last_order FROM orders GROUP BY o_w_id, o_d_id) AS o
         ON o_w_id=d_w_id AND o_d_id=d_id
      LEFT JOIN (SELECT no_w_id, no_d_id, MAX(no_o_id) AS last_new_order FROM new_order GROUP BY no_w_id, no_d_id) AS n
         ON no_w_id=d_w_id AND no_d_id=d_id
      WHERE d_next_o_id <> COALESCE(last_order, 0)+1 OR d_next_o_id <> last_new_order+1
      ORDER BY d_w_id, d_id LIMIT 1]]},
   {{"NO_W_ID", "NO_D_ID", "min(NO_O_ID)", "max(NO_O_ID)", "rows"}, [[
      SELECT no_w_id, no_d_id, MIN(no_o_id), MAX(no_o_id), COUNT(*)
      FROM new_order GROUP BY no_w_id, no_d_id
      HAVING MAX(no_o_id)-MIN(no_o_id)+1 <> COUNT(*) ORDER BY no_w_id, no_d_id LIMIT 1]]},
   {{"D_W_ID", "D_ID", "sum(O_OL_CNT)", "rows of ORDER_LINE"}, [[
      SELECT d_w_id, d_id, COALESCE(total, 0), COALESCE(lines_there, 0)
      FROM district
      LEFT JOIN (SELECT o_w_id, o_d_id, SUM(o_ol_cnt) AS total FROM orders GROUP BY o_w_id, o_d_id) AS o
         ON o_w_id=d_w_id AND o_d_id=d_id
      LEFT JOIN (SELECT ol_w_id, ol_d_id, COUNT(*) AS lines_there FROM order_line GROUP BY ol_w_id, ol_d_id) AS l
         ON ol_w_id=d_w_id AND ol_d_id=d_id
      WHERE COALESCE(total, 0) <> COALESCE(lines_there, 0) ORDER BY d_w_id, d_id LIMIT 1]]}
}

local function check()
   local connection = connect()
   -- One snapshot for all queries, because clients may be active.
   connection:query("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
   connection:query("START TRANSACTION WITH CONSISTENT SNAPSHOT")
   local found = tonumber((connection:query_row("SELECT COUNT(*) FROM warehouse")))
   local consistent = found == warehouses()
   if not consistent then
      print(format("there are %d warehouses, not %d", found, warehouses()))
   end
   for i, condition in ipairs(CONDITIONS) do
      local names, rows = condition[1], connection:query(condition[2])
      if rows.nrows == 0 then
         print(format("consistency condition %d: holds", i))
      else
         consistent = false
         local row, values = rows:fetch_row(), {}
         for column, name in ipairs(names) do
            values[column] = name .. " " .. (row[column] or "NULL")
         end
         print(format("consistency condition %d: violated: %s", i, concat(values, ", ")))
      end
   end
   connection:query("COMMIT")
   connection:disconnect()
   -- If a command returns false, sysbench exits with an error.
   return consistent
end

sysbench.cmdline.commands = {
   prepare = {prepare, sysbench.cmdline.PARALLEL_COMMAND},
   check = {check}
}
