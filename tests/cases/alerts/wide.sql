overlay(code PLACING '**' FROM 1 FOR 2) = '**-12'
overlay(code PLACING 'Z' FROM 3) LIKE 'ABZ%'
overlay(symbol PLACING 'XX' FROM 2) = 'IXXC'
volume >>> 2 > 0
qty >>> 28 = 15
qty >>> 1 + 1 = 15
qty >>> 1 & 1 = 1
num >> 1 = 21
substr(symbol, 1L) = 'INTC'
substr(symbol, 2L, 2L) = 'NT'
substr(symbol, '2') = 'NTC'
left(symbol, 2.7) = 'IN'
substring(symbol, volume) = ''
left(symbol, 2L) = 'IN'
left(symbol, num) = 'IN'
user['name'] = 'ann'
items[0]['sku'] = 'x'
items['sku'][0] = 'x'
user['address']['city'] = 'Madrid'
date_add(day, '5') = due
date_add(day, num) > due
add_months(day, 1L) > due
EXTRACT(YEAR FROM stamp) = 2026
EXTRACT(HOUR FROM stamp) = 9
date_part('hour', stamp) = 9
timestampdiff(MINUTE, stamp, at) > 5
timestampadd(DAY, '2', at) > at
timestampadd(DAY, 2.5, at) > at
at - stamp > INTERVAL 1 MINUTE
day - stamp > INTERVAL 1 DAY
EXTRACT(MINUTE FROM seen - at) >= 0
EXTRACT(HOUR FROM seen - at) >= 0
EXTRACT(HOUR FROM due - day) >= 0
from_unixtime(num) LIKE '1970%'
from_unixtime('1700000000') LIKE '2023%'
from_unixtime(num, 'yyyy') LIKE '1970%'
bin(num) = '101010'
chr(num) = '*'
factorial(num) > 5
width_bucket(price, 0, 100, '10') = 10
shiftleft(num, 1) = 84
elt('1', symbol, code) = 'INTC'
split(csv, '[,;]')[1] = 'b'
split(csv, '[,;]\s*')[1] = 'y'
split(csv, ',', 2)[1] = 'b,c,,'
split(csv, ',', -1)[3] = ''
split(csv, ',', 0)[3] = ''
split(csv, ';', 3)[2] = ';3'
split(csv, ',', 1)[0] = csv
split(msg, ' +')[0] = 'ERROR'
split(msg, '\s+')[0] = 'ERROR'
split(msg, '.')[0] = ''
size(split(msg, '.')) = 40
split(msg, '\.')[1] = '0'
split(msg, '[.]')[1] = '0'
split(msg, '[.]', 2)[1] LIKE '0.%'
split(msg, '\d+')[1] = '.'
size(split(msg, 'o')) = 4
size(split(msg, 'o|e')) = 6
split(lower(msg), '(error|user)')[0] = ''
split(msg, '(?i)ERROR')[0] = ''
split(msg, ' $')[0] = ''
split(csv, ',$')[0] = 'a,b,c,'
split(msg, '[0-9]{2,}', 2)[0] LIKE 'user%'
array_contains(split(csv, '[,;]'), 'b')
split(csv, ', *')[1] = 'y'
split(num, '-')[1] = '3.75'
split(num, '}')[0] = '42'
exists(split(csv, '[,;]'), x -> x = 'b')
decode(code, 'AB-12', 1, 'xx99yy', 2, 0) = 1
decode(qty, 10, 'ten', -3, 'neg') = 'ten'
decode(symbol, 'INTC', 'chip', 'aapl', 'fruit', 'other') = 'chip'
decode(symbol, NULL, 'none', 'some') = 'none'
decode(qty, 10.0, 1, 2) = 1
decode(qty, 10, 1, 2.5) = 2.5
decode(symbol, 'INTC', qty) = 10
raw || X'00' = X'C3A900'
concat(raw, raw) = X'C3A9C3A9'
concat(raw, X'00', NULL) IS NULL
substring(raw, 1, 2) = X'1F8B'
substring(raw, -1) = X'A9'
substring(raw, -9, 8) = X''
substring(raw, 0, 1) = X'1F'
substr(raw, 2) = X'A9'
substr(raw, 1, 1) = X'1F'
left(raw, 1) = X'1F'
left(raw, -1) = X''
length(substring(raw, 2, 100)) = 4
map('a', 1, 'b', 2)[symbol] IS NULL
map('INTC', 'chips')[symbol] = 'chips'
map('INTC', 1, 'aapl', 2)[symbol] = 2
attrs[symbol] IS NULL
attrs[left('tierx', 4)] = 'gold'
element_at(map('INTC', 7), symbol) = 7
try_element_at(map('INTC', 7), symbol) = 7
coalesce(map('INTC', 'chips')[upper(symbol)], 'unknown') = 'unknown'
(symbol, qty) = ('INTC', 10)
(symbol, qty) <> ('INTC', 10)
(symbol, qty) IN (('INTC', 10), ('aapl', -3))
(qty, volume) IN ((10, 5000000000))
(symbol, qty) NOT IN (('INTC', 10), ('aapl', -3))
(price, ok) = (99.5, true)
(amount, rate) = (1234.5, 0.00125)
(price, qty) = (-0.0, -3)
(price, qty) = (0.0, -3)
(qty, price) = (10.0, 99.5)
(symbol, day) = ('INTC', DATE '2026-01-05')
(symbol, day) = ('INTC', '2026-01-05')
(qty, symbol) = ('10', 'INTC')
(symbol, qty) = (code, tiny)
(symbol, qty) < ('INTC', 10)
day + INTERVAL 1 MONTH > due
sha2(msg, 256) LIKE 'e3b0c442%'
day + INTERVAL 1 HOUR > at
crc32(symbol) > 100
seen BETWEEN at AND at + INTERVAL 2 MINUTES
xxhash64(symbol, qty) % 100 < 50
at + INTERVAL '1-2' YEAR TO MONTH > seen
array_sort(nums)[0] = 1
at - INTERVAL 1 QUARTER < seen
get_json_object(body, '$.user.id')::int > 5
hex(symbol) = '494E5443'
sha1(symbol) IS NOT NULL
map('INTC', 'chips')[symbol] = 'chips'
regexp_extract(msg, 'id=(\d+)') = '42'
raw = X'C3A9'
at BETWEEN _time - INTERVAL 1 HOUR AND _time
amount = price
at - INTERVAL '5' MINUTE < seen
hex(raw) LIKE '1F8B%'
coalesce(user.name, symbol, 'none') = 'none'
items[0]['sku'] = 'x'
EXTRACT(HOUR FROM at) = 9
ratio * 2 = 0.5
to_date(stamp) = DATE '2026-01-05'
EXTRACT(SECOND FROM at) < 1
regexp_extract(msg, 'id=(\d+)', 1)::int > 40
at + qty * INTERVAL '1' MINUTE > seen
get_json_object(body, '$.user.id') = '7'
seen - at < INTERVAL '0 00:01:00' DAY TO SECOND
day IN (DATE '2026-01-05')
regexp_replace(msg, '(\w+)=(\w+)', '$2=$1') LIKE 'bob=user%'
at = day
at + INTERVAL '1 02:03:04' DAY TO SECOND > seen
day - 1 = DATE '2026-01-04'
at > '2026-01-05'
symbol IS DISTINCT FROM 'INTC'
regexp_replace(symbol, '[^A-Z]', '') = 'BRKB'
hex(qty) = 'A'
greatest(qty, volume) > 10
map_filter(counts, (k, v) -> v > 1)['b'] = 2
at BETWEEN '2026-01-01' AND '2026-02-01'
payload:tags[0]::string = 'a'
at - INTERVAL 100 MILLISECONDS < seen
regexp_replace(msg, '\d+', '#') = 'user=bob id=# took # ms'
tiny + small = 201
aggregate(items, 0, (acc, x) -> acc + coalesce(x.qty, 0)) = 3
str_to_map('a=1&b=2', '&', '=')['b'] = '2'
variant_get(payload, '$.user.id', 'INT') IN (7, 8)
at > seen - INTERVAL '00:01:00' HOUR TO SECOND
EXTRACT(EPOCH FROM at) > 0
raw || X'00' = X'C3A900'
get_json_object(body, '$.items[0].sku') = 'x'
exists(map_values(counts), c -> c > 5)
amount / rate > 1000
seen - at < make_dt_interval(0, 0, 1, 0)
ratio > 0.2
get_json_object(body, '$') IS NOT NULL
aggregate(nums, 0, (acc, x) -> acc + x, acc -> acc * 10) = 60
day <=> '2026-01-05'
ratio = 0.25
amount + 0.5 > 1235
EXTRACT(DAY FROM (seen - at)) = 0
CASE symbol WHEN 'INTC' THEN 1 WHEN 'aapl' THEN 2 ELSE 0 END = 1
width_bucket(price, 0, 100, 10) = 10
items.sku[0] = 'x'
day BETWEEN DATE '2026-01-01' AND DATE '2026-12-31'
due - day > INTERVAL '30' DAY
day + 30 < due
map_contains_key(attrs, 'env')
seen - at < INTERVAL 1 MINUTE
EXTRACT(MINUTE FROM seen - at) >= 0
to_date(stamp, 'yyyy-M-d H:mm:ss') IS NOT NULL
day + INTERVAL '1' YEAR > due
regexp_instr(msg, '\d') > 0
ratio = price
at > seen - INTERVAL '1 minute'
day IN ('2026-01-05', '2024-02-29')
map('a', 1, 'b', 2)[symbol] = 1
date_trunc('DAY', at) = day
amount BETWEEN 0 AND 1e4
exists(items, x -> x.price > 50)
str_to_map(msg, ' ', '=')['user'] = 'bob'
tiny & 1 = 1
payload:user.name = 'bob'
amount IN (1234.5, 0)
regexp_extract_all(msg, '(\d+)', 1)[1] = '1500'
to_timestamp(stamp) < at
at - day > INTERVAL 9 HOURS
map_concat(counts, map('q', 1))['q'] = 1
amount = 1234.5
day = DATE '2026-1-5'
day = CAST('2026-1-5' AS DATE)
day = CAST(' 2026-1-5 ' AS DATE)
day > DATE '2026'
day >= date('2026-1')
at > TIMESTAMP '2026-1-5 9:3:1'
at > TIMESTAMP '2026-1-5 9:3'
at > CAST('2026-1' AS TIMESTAMP)
at > CAST('2026-1-5T9:03:01.5Z' AS TIMESTAMP)
amount / rate = 987600
amount / rate BETWEEN 1000 AND 10000000
amount / rate IN (987600, 1)
amount / rate > 1000.5
1000 < amount / rate
amount * rate / 3 > 0
rate / amount < 1
regexp_extract(msg, '(?<name>\w+)=(?<value>\w+)', 2) = 'bob'
regexp_extract(msg, '(?<name>\w+)=', 1) = 'user'
msg RLIKE '(?<x>id)=\d+'
regexp_replace(msg, '(?<k>\w+)=(?<v>\w+)', '$2=$1') LIKE 'bob=user%'
num::float > 40
CAST(num AS FLOAT) = -3.75
CAST(amount AS FLOAT) > 1000
float(num) > 1
CAST(rate AS FLOAT) < ratio
CAST(msg AS FLOAT) > 1
