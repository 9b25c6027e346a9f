status = 'cancelled'
status IN ('refunded', 'cancelled') AND total > 100
total > 1000
total > 999.99 AND currency = 'EUR'
total >= 100 AND total < 500
total BETWEEN 100 AND 499.99
total * 1.21 > 600
total * (1 - discount) > 100
total - total * discount < 20
discount > 0.3
discount >= 0.5 OR coupon IS NOT NULL
round(total * 0.21, 2) > 50.00
total % 1 = 0
CAST(total AS INT) = 100
customer.vip
customer.vip AND total > 500
customer.id = 1001
customer.id IN (1001, 1002, 1003)
customer.email ILIKE '%@example.com'
customer.email LIKE '%@gmail.com'
lower(customer.email) = 'ann@example.com'
split(customer.email, '@')[1] = 'example.com'
regexp_extract(customer.email, '@(.+)$', 1) IN ('mailinator.com', 'tempmail.org')
substring_index(customer.email, '@', -1) = 'example.com'
customer.email RLIKE '^[^@]+@[^@]+\.[a-z]{2,}$'
NOT (customer.email RLIKE '^[^@]+@[^@]+$')
customer.name IS NULL OR trim(customer.name) = ''
customer.address.country = 'ES'
customer.address.country <> 'ES' AND total > 200
customer.address.city ILIKE 'madrid'
customer.address.zip LIKE '28%'
substr(customer.address.zip, 1, 2) IN ('28', '08')
customer.address.zip RLIKE '^[0-9]{5}$'
customer.address IS NULL
initcap(customer.address.city) = 'Madrid'
array_contains(items.sku, 'SKU-1')
exists(items, i -> i.sku = 'SKU-1')
exists(items, i -> i.qty >= 10)
exists(items, i -> i.price > 500 AND i.qty > 1)
exists(items, i -> array_contains(i.categories, 'toys'))
exists(items, i -> exists(i.categories, c -> c ILIKE 'elec%'))
forall(items, i -> i.price < 20)
size(items) > 5
size(items) = 1 AND items[0].qty = 1
items[0].sku LIKE 'GIFT%'
items[0].price * items[0].qty > 100
element_at(items, 1).qty > 2
aggregate(items, 0, (s, i) -> s + i.qty) > 10
aggregate(items, CAST(0 AS DECIMAL(38,4)), (s, i) -> s + i.price * i.qty) > 1000
aggregate(items, 0D, (s, i) -> s + i.price * i.qty) <> total
size(filter(items, i -> i.price > 100)) >= 2
array_max(transform(items, i -> i.price)) > 100
array_max(items.qty) > 5
size(array_distinct(items.sku)) <> size(items)
array_contains(flatten(items.categories), 'books')
size(array_distinct(flatten(items.categories))) > 3
array_contains(flatten(transform(items, i -> i.categories)), 'garden')
arrays_overlap(items.sku, array('SKU-1', 'SKU-2'))
array_join(items.sku, ',') = 'SKU-1,SKU-2'
array_position(items.sku, 'SKU-2') > 0
size(array_intersect(items.sku, array('SKU-1', 'SKU-9'))) = 1
sort_array(items.price)[0] < 1
slice(items, 1, 1)[0].sku = 'SKU-1'
coupon = 'BLACKFRIDAY'
coupon LIKE 'BF%' AND total < 10
upper(coupon) RLIKE '^BF[0-9]{2}$'
length(coupon) > 12
coalesce(coupon, 'NONE') = 'NONE'
nvl(coupon, '') = ''
attributes['source'] = 'facebook'
attributes.source IN ('facebook', 'google')
attributes['utm_campaign'] ILIKE 'summer%'
coalesce(attributes['device'], 'unknown') = 'unknown'
map_contains_key(attributes, 'fraud_score') AND CAST(attributes['fraud_score'] AS DOUBLE) > 0.8
CAST(attributes['fraud_score'] AS DECIMAL(5,2)) > 0.80
CAST(attributes['age'] AS INT) < 18
attributes['age'] < 18
try_cast(attributes['age'] AS INT) IS NULL
array_contains(map_values(attributes), 'facebook')
exists(map_entries(attributes), e -> e.value IS NULL)
element_at(attributes, 'source') = 'google'
size(map_keys(attributes)) > 2
created_at >= DATE '2026-11-01'
created_at > '2026-11-20 18:00:00'
CAST(created_at AS DATE) = DATE '2026-11-20'
date(created_at) BETWEEN '2026-11-20' AND '2026-11-27'
date_trunc('day', created_at) = '2026-11-20'
date_trunc('week', created_at) = TIMESTAMP '2026-11-16 00:00:00'
hour(created_at) = 0 AND minute(created_at) < 30
hour(from_utc_timestamp(created_at, 'Europe/Madrid')) >= 22
to_utc_timestamp('2026-11-20 20:00:00', 'Europe/Madrid') < created_at
date_format(created_at, 'yyyyMM') = '202611'
date_format(created_at, 'u') = '5'
dayofmonth(created_at) = 1
weekofyear(created_at) = 47
EXTRACT(MONTH FROM created_at) IN (11, 12)
EXTRACT(YEAR FROM deliver_on) = 2026
deliver_on < to_date(created_at) + 2
deliver_on - DATE(created_at) > INTERVAL '7' DAY
datediff(deliver_on, created_at) > 7
datediff(DAY, created_at, deliver_on) > 7
dateadd(DAY, 3, deliver_on) > DATE '2026-12-24'
deliver_on + INTERVAL 1 MONTH > '2026-12-24'
deliver_on BETWEEN DATE '2026-12-20' AND DATE '2026-12-26'
deliver_on IS NULL AND status = 'paid'
next_day(to_date(created_at), 'MON') = deliver_on
_time - created_at > INTERVAL 2 HOURS AND status = 'new'
timestampdiff(HOUR, created_at, _time) >= 24
get_json_object(payment, '$.method') = 'card'
get_json_object(payment, '$.card.country') <> customer.address.country
get_json_object(payment, '$.risk')::int > 70
CAST(get_json_object(payment, '$.amount') AS DECIMAL(12,2)) <> total
get_json_object(payment, '$.method') IS NULL
ratings[0] = 1
array_min(ratings) = 1
aggregate(ratings, 0, (a, r) -> a + r) / size(ratings) < 2.5
forall(ratings, r -> r <= 2)
exists(ratings, r -> r IN (1, 2))
exists(ratings, r -> r BETWEEN 1 AND 2)
array_contains(ratings, 5) AND array_contains(ratings, 1)
gift
gift = true AND total > 50
gift IS TRUE
gift IS NULL
NOT gift AND coupon IS NULL
channel LIKE 'mobile%'
channel NOT IN ('web', 'mobile-ios')
order_no LIKE 'ES-____-%'
CAST(substring(order_no, 4, 4) AS INT) = 2026
split(order_no, '-')[0] = customer.address.country
regexp_replace(order_no, '[^0-9]', '') = '20260001'
CASE currency WHEN 'EUR' THEN total WHEN 'USD' THEN total * 0.92 WHEN 'GBP' THEN total * 1.17 ELSE NULL END > 500
CASE WHEN total > 1000 THEN 'large' WHEN total > 100 THEN 'medium' ELSE 'small' END IN ('large', 'medium')
if(customer.vip, 0.9, 1.0) * total > 450
greatest(total, 50) = 50
least(total, 100.00) = 100.00
total IS DISTINCT FROM 100
currency NOT IN ('EUR') AND NOT gift
format_string('%s-%s', currency, channel) = 'EUR-web'
md5(customer.email) = '00'
named_struct('a', status, 'b', currency).b = 'EUR'
struct(status, currency).status = 'paid'
array(status, currency)[1] = 'EUR'
map('EUR', 1, 'USD', 2)[currency] = 1
try_divide(total, size(items)) > 100
try_to_number(attributes['price'], '999.99') > 10
total > 500 AND currency = 'EUR'
customer.email LIKE '%@mailinator.com'
lower(customer.email) RLIKE '@(mailinator|guerrillamail)\.'
split(customer.email, '@')[1] IN ('mailinator.com', 'example.com')
substring_index(customer.email, '@', -1) = 'Example.com'
customer.email NOT RLIKE '^[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}$'
customer.vip AND status IN ('cancelled', 'refunded')
customer.address.country <> 'ES' AND total >= 100
length(customer.address.zip) <> 5
CAST(customer.address.zip AS INT) BETWEEN 28000 AND 28999
size(items) = 0 OR items IS NULL
exists(items, i -> i.price * i.qty > 400)
filter(items, i -> i.sku LIKE 'GIFT%')[0].qty > 10
aggregate(items, 0, (a, i) -> a + i.qty) > 2
aggregate(items, CAST(0 AS DECIMAL(20,2)), (a, i) -> CAST(a + i.price * i.qty AS DECIMAL(20,2))) <> total
transform(items, i -> i.sku)[0] = 'SKU-1'
array_contains(transform(items, i -> i.sku), 'SKU-1')
array_contains(items.sku, 'SKU-2')
size(flatten(transform(items, i -> i.categories))) > 3
array_distinct(items.sku) <> items.sku
coupon IS NOT NULL AND discount > 0.25
coupon RLIKE '^BF[0-9]{2}$'
upper(coupon) LIKE 'BF%' AND discount = 0.3
discount * total > 100
round(total * (1 - discount), 2) < 20
created_at > _time - INTERVAL 1 DAY
created_at >= date_trunc('DAY', _time)
date_trunc('MONTH', created_at) = '2026-11-01'
deliver_on < date_add(created_at, 2)
deliver_on - date(created_at) <= INTERVAL '3' DAY
datediff(deliver_on, created_at) > 20
next_day(created_at, 'MON') = deliver_on
year(created_at) = 2026 AND quarter(created_at) = 4
attributes['source'] = 'facebook' AND channel = 'web'
attributes['fraud_score'] > 0.8
CAST(attributes['fraud_score'] AS DOUBLE) >= 0.8
try_cast(attributes['age'] AS INT) < 18
map_contains_key(attributes, 'utm_campaign') AND attributes['utm_campaign'] ILIKE 'summer%'
element_at(attributes, 'price')::DECIMAL(10,2) > 10
channel LIKE 'mobile-%' AND payment LIKE '%paypal%'
get_json_object(payment, '$.risk') > 70
from_json(payment, 'method STRING, risk INT, amount DOUBLE').risk > 70
from_json(payment, 'STRUCT<method: STRING, card: STRUCT<country: STRING>>').card.country = 'FR'
json_tuple(payment, 'method') = 'card'
array_min(ratings) <= 2
exists(ratings, r -> r = 1)
array_sort(ratings, (a, b) -> b - a)[0] = 5
gift = true AND total < 20
gift IS NOT TRUE AND status = 'paid'
status = 'paid' XOR gift
order_no LIKE 'ES-%' AND right(order_no, 4) = '0001'
order_no RLIKE '^[A-Z]{2}-\d{4}-\d{4}$'
try_to_number(right(order_no, 4), '9999') > 1
to_number(attributes['price'], '99.99') > 10
