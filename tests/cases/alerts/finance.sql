symbol = 'INTC' AND price < 100
price > 100.50 AND qty >= 1000
symbol IN ('AAPL', 'MSFT', 'GOOG') AND side = 'BUY'
notional > 1e6
price * qty > 250000
price BETWEEN 99.5 AND 101.25
symbol ILIKE 'aa%'
upper(symbol) = 'AAPL'
lower(trim(venue)) = 'nyse'
venue IS NULL OR venue = ''
coalesce(venue, 'OTC') = 'OTC'
nvl(note, '') LIKE '%manual%'
account.country = 'US'
account.type IN ('margin', 'cash') AND account.balance < 0
account.balance < price * qty
account.id = 4711
account.balance - price * qty < -1000
account IS NULL
account.country NOT IN ('US', 'GB', 'DE')
array_contains(tags, 'block')
NOT array_contains(tags, 'test')
exists(tags, t -> t LIKE 'algo-%')
size(tags) = 0
size(legs) > 1
exists(legs, l -> l.qty > 100 AND l.price > 50)
forall(legs, l -> l.symbol <> symbol)
aggregate(legs, 0, (acc, l) -> acc + l.qty) > 500
aggregate(fill_prices, 0D, (s, x) -> s + x) / size(fill_prices) > price
array_max(fill_prices) - array_min(fill_prices) > 0.5
fees['exchange'] > 2.5
fees['sec'] IS NOT NULL
coalesce(fees['broker'], 0) > 1
element_at(fees, 'broker') >= 1.00
map_contains_key(fees, 'tax')
array_contains(map_keys(fees), 'clearing')
legs[0].price > 10
try_element_at(legs, 1).symbol = 'MSFT'
legs[0].symbol = symbol
at > TIMESTAMP '2026-11-20 09:30:00'
at >= '2026-11-20 14:30:00' AND at < '2026-11-20 21:00:00'
hour(at) >= 16
hour(from_utc_timestamp(at, 'America/New_York')) BETWEEN 9 AND 15
date_format(from_utc_timestamp(at, 'America/New_York'), 'HH:mm') < '09:30'
EXTRACT(HOUR FROM at) = 14
EXTRACT(DOW FROM trade_date) IN (1, 7)
dayofweek(trade_date) = 6
weekday(trade_date) < 5
trade_date = DATE '2026-11-20'
trade_date >= '2026-11-01'
settle_date > trade_date + 2
settle_date > date_add(trade_date, 2)
datediff(settle_date, trade_date) > 3
settle_date - trade_date > INTERVAL 3 DAYS
settle_date < trade_date
months_between(settle_date, trade_date) >= 1
quarter(trade_date) = 4 AND year(trade_date) = 2026
last_day(trade_date) = trade_date
date_trunc('month', at) = TIMESTAMP '2026-11-01 00:00:00'
trunc(trade_date, 'MM') = DATE '2026-11-01'
to_date(at) = trade_date
CAST(at AS DATE) <> trade_date
date(at) = DATE '2026-11-20'
at < trade_date
at - INTERVAL 30 MINUTES > '2026-11-20 09:30:00'
at + INTERVAL '1' DAY < TIMESTAMP '2026-11-22 00:00:00'
CASE WHEN side = 'BUY' THEN price > 100 ELSE price < 50 END
CASE side WHEN 'BUY' THEN qty WHEN 'SELL' THEN -qty ELSE 0 END < -100
if(side = 'SELL', -qty, qty) > 500
abs(price - 100) > 5
round(price, 2) = 100.50
price % 0.05 <> 0
round(notional / qty, 2) > 99.99
floor(price) = 100
ceil(price) > 100
price / nullif(qty, 0) > 1
qty % 100 <> 0
mod(qty, 100) = 0
greatest(price, 100) = price
CAST(price AS DOUBLE) > notional / qty
CAST(qty AS DECIMAL(18,4)) * price > 100000.00
CAST(notional AS DECIMAL(20,2)) > 100000.00
notional > '100000'
qty = '100'
price > '99.95'
cancelled
NOT cancelled
cancelled IS NOT TRUE
cancelled = false AND side <> 'SELL'
note RLIKE '(?i)error|reject'
regexp_extract(note, 'order=([0-9]+)', 1) = '12345'
CAST(regexp_extract(note, 'order=([0-9]+)', 1) AS BIGINT) > 10000
regexp_replace(symbol, '[^A-Z]', '') <> symbol
split(note, ';')[0] = 'manual'
substring(symbol, 1, 2) = 'BR'
left(symbol, 1) = 'M'
length(symbol) > 4
symbol LIKE 'BRK._'
symbol LIKE ANY ('A%', 'M%')
concat(venue, ':', symbol) = 'NASDAQ:AAPL'
venue || ':' || symbol = 'NYSE:IBM'
concat_ws('/', venue, side) = 'NYSE/BUY'
symbol <=> NULL
(side = 'BUY' AND price > 150) OR (side = 'SELL' AND price < 20)
NOT (side = 'BUY' OR qty < 10)
exists(fill_prices, p -> p > price * 1.01)
array_position(tags, 'block') > 0
array_contains(transform(legs, l -> l.symbol), 'TSLA')
size(filter(legs, l -> l.qty < 0)) >= 1
array_join(tags, ',') LIKE '%algo%'
arrays_overlap(tags, array('block', 'dark'))
size(array_intersect(tags, array('block', 'dark'))) > 0
size(array_distinct(transform(legs, l -> l.symbol))) < size(legs)
sort_array(fill_prices)[0] < 99
slice(fill_prices, 1, 2)[1] > 100
signum(qty) = -1
pmod(id, 10) = 3
to_char(price, '999.99') = '100.50'
unix_timestamp(at) - unix_timestamp(trade_date) > 3600
timestampdiff(MINUTE, TIMESTAMP '2026-11-20 14:30:00', at) BETWEEN 0 AND 5
(price - 100) / 100 >= 0.02
symbol RLIKE '^BRK\.[AB]$' OR symbol LIKE 'BF.%'
price * qty > 1000000 AND side = 'SELL'
abs(notional - price * qty) > 0.01
round(price, 2) <> price
date_diff(settle_date, trade_date) > 2
settle_date - trade_date > INTERVAL 2 DAYS
dayofweek(trade_date) IN (1, 7)
EXTRACT(HOUR FROM at) NOT BETWEEN 9 AND 16
hour(from_utc_timestamp(at, 'America/New_York')) < 9
date_format(at, 'HH:mm') > '20:30'
account.balance < 0 AND account.type = 'cash'
account.country NOT IN ('US', 'CA', 'GB') AND notional > 50000
coalesce(account.balance, 0) + notional < 0
fees['broker'] / notional > 0.001
element_at(fees, 'exchange') > 1.5
size(legs) > 1 AND forall(legs, l -> l.qty > 0)
exists(legs, l -> l.symbol = 'TSLA' AND l.price IS NULL)
aggregate(legs, 0, (acc, l) -> acc + l.qty) <> qty
aggregate(transform(legs, l -> l.qty * l.price), CAST(0 AS DOUBLE), (a, x) -> a + x) > 100000
array_max(fill_prices) > price * 1.02
try_divide(array_max(fill_prices), array_min(fill_prices)) > 1.01
array_contains(tags, 'block') AND NOT array_contains(tags, 'test')
arrays_overlap(tags, array('dark', 'sweep'))
regexp_extract(note, 'order=(\d+)', 1) = '12345'
note ILIKE '%reject%' OR cancelled
CASE WHEN side = 'BUY' THEN price > 500 WHEN side = 'SELL' THEN price < 10 ELSE false END
CASE venue WHEN 'NASDAQ' THEN qty > 500 ELSE qty > 5000 END
(side = 'BUY') = (qty > 0)
sign(qty) = -1 AND upper(trim(venue)) = 'NYSE'
price BETWEEN 99.95 AND 100.05
try_cast(split(note, ';')[0] AS INT) IS NULL
at >= trade_date + INTERVAL 20 HOURS
unix_timestamp(at) - unix_timestamp(_time) < -60
trade_date = last_day(trade_date)
month(trade_date) = 12 AND day(trade_date) >= 24
greatest(price, 100) > 400
log10(notional) >= 6
ln(price / 100) > 0.01
concat(symbol, ':', venue) = 'INTC:NASDAQ'
concat_ws('/', symbol, side, venue) = 'INTC/BUY/NASDAQ'
to_char(price, '999,999.99') = '     99.95'
format_number(notional, 0) LIKE '%,%,%'
