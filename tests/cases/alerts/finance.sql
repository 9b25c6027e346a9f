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
