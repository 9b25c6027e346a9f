temperature > 80
temperature > 80.5 AND humidity < 20
temperature BETWEEN -40 AND -10
temperature IS NULL AND online
isnan(temperature)
NOT online
battery < 15
battery <= 20 AND NOT online
rpm > 3000 OR rpm < 100
device_id LIKE 'pump-%'
device_id RLIKE '^pump-[0-9]{3}$'
device_id = 'pump-001' AND kind = 'motor'
kind IN ('motor', 'valve', 'sensor')
regexp_extract(device_id, '^([a-z]+)-([0-9]+)$', 1) = 'valve'
CAST(split(device_id, '-')[1] AS INT) > 5
CAST(split_part(device_id, '-', 2) AS INT) BETWEEN 1 AND 10
location.site = 'Madrid'
location.floor > 3
location.lat BETWEEN 40 AND 41 AND location.lon BETWEEN -4 AND -3
location.lat > 40.0 AND location.lon < -3.5
sqrt(pow(location.lat - 40.4, 2) + pow(location.lon + 3.7, 2)) < 0.5
location.site ILIKE '%factory%'
location.floor IS NULL
temperature > thresholds.high
temperature NOT BETWEEN thresholds.low AND thresholds.high
temperature > thresholds.high * 1.1
temperature - thresholds.high > 5
thresholds.high - thresholds.low < 10
samples[0] > 50
samples[0] > samples[1]
element_at(samples, -1) > 50
element_at(samples, 1) > element_at(samples, -1)
array_max(samples) > 90
array_min(samples) < 0
array_max(samples) - array_min(samples) > 20
aggregate(samples, CAST(0 AS DOUBLE), (a, x) -> a + x, a -> a / size(samples)) > 40
reduce(samples, 0.0D, (a, x) -> a + x) > 100
exists(samples, s -> s > 99)
exists(samples, s -> abs(s) > 99.5)
forall(samples, s -> s BETWEEN 0 AND 100)
forall(counts, c -> c = 0)
size(samples) < 3
size(filter(samples, s -> s > 50)) > 2
size(filter(samples, s -> s IS NULL)) > 0
exists(transform(samples, s -> s * 1.8 + 32), f -> f > 200)
array_contains(counts, 0)
array_position(counts, 0) = 1
array_distinct(counts)[0] = 7
sort_array(counts, false)[0] > 100
size(array_remove(counts, 0)) = 0
cardinality(counts) = 0
reverse(samples)[0] > 20
slice(samples, -2, 2)[0] < 10
array_size(array_compact(samples)) < size(samples)
labels['env'] = 'prod'
labels['owner'] IS NULL
labels.env = 'prod' AND temperature > 70
element_at(labels, 'room') = 'A1'
map_contains_key(labels, 'calibrated')
size(labels) = 0
size(map_filter(labels, (k, v) -> v IS NULL)) > 0
array_contains(map_values(labels), 'prod')
exists(map_entries(labels), e -> e.key LIKE 'x-%')
flags & 1 = 1
(flags & 4) <> 0
flags & 0 = 0 AND flags > 2
shiftright(flags, 2) % 2 = 1
bit_count(flags) > 2
get_json_object(payload, '$.error.code') = 'E42'
CAST(get_json_object(payload, '$.voltage') AS DOUBLE) > 3.3
get_json_object(payload, '$.readings[0].v') IS NOT NULL
get_json_object(payload, '$.mode') IN ('auto', 'eco')
get_json_object(payload, '$.voltage')::double < 3.0
at > '2026-11-20'
at < TIMESTAMP '2026-11-20T12:00:00Z'
_time - at > INTERVAL 5 MINUTES
_time > at + INTERVAL '10' SECOND
at < _time - INTERVAL 1 HOUR
timestampdiff(SECOND, at, _time) > 300
unix_seconds(_time) - unix_seconds(at) > 300
hour(at) NOT BETWEEN 6 AND 22
minute(at) % 15 = 0
EXTRACT(MINUTE FROM at) < 5
date_part('hour', at) = 3
dayofyear(at) > 300
month(at) IN (12, 1, 2) AND temperature < 0
year(installed) < 2020
months_between(at, installed) > 24
datediff(at, installed) > 365
installed + INTERVAL 2 YEARS < at
add_months(installed, 24) < to_date(at)
date_add(installed, 730) < CAST(at AS DATE)
date_sub(to_date(at), 30) > installed
from_utc_timestamp(at, 'Europe/Madrid') >= '2026-10-25 02:00:00'
date_format(at, 'EEEE') = 'Sunday'
date_format(at, 'yyyy-MM-dd') = '2026-11-20'
date_trunc('hour', at) = at
dayname(at) = 'Fri'
firmware < '2.0'
firmware NOT LIKE '3.%'
CAST(split(firmware, '\.')[0] AS INT) < 2
CAST(regexp_extract(firmware, '^([0-9]+)\.', 1) AS INT) >= 3
regexp_like(firmware, 'beta|rc')
substring_index(firmware, '.', 1) = '1'
coalesce(temperature, 0) > 50
nvl2(temperature, temperature > 50, false)
ifnull(battery, 100) < 10
round(temperature, 1) = 21.5
round(temperature) > 80
abs(temperature - 20) > 15
CASE WHEN kind = 'motor' THEN rpm > 3000 WHEN kind = 'valve' THEN temperature > 60 ELSE false END
(temperature - 32) * 5 / 9 > 37
humidity > 95.5
CAST(humidity AS INT) = 42
battery + 10 > 100
greatest(temperature, humidity) > 90
hex(raw) = '00FF10'
raw = X'00FF10'
length(raw) = 3
sign(temperature) < 0
temperature > '75'
rpm = '3000'
log10(rpm) > 3
temperature <=> NULL
concat('site-', location.site) = 'site-Madrid'
lpad(CAST(rpm AS STRING), 5, '0') = '03000'
to_timestamp('2026-11-20 12:00:00') <= at
installed = to_date('20/11/2023', 'dd/MM/yyyy')
element_at(zip_with(samples, counts, (s, c) -> s * c), 1) > 100
sequence(1, 3)[0] = battery
array_join(transform(counts, c -> CAST(c AS STRING)), '-') = '0-0-7'
array_contains(CASE WHEN online THEN counts END, 7)
size(array_distinct(CASE WHEN NOT online THEN samples END)) = 4
exists(CASE WHEN kind = 'motor' THEN samples END, s -> s > 90)
size(array_distinct(array_remove(counts, CAST(battery AS INT)))) = 1
reduce(CASE WHEN NOT online THEN counts END, 5, (a, c) -> a + c) >= 5
array_max(CASE WHEN online THEN samples END) > 50
(CASE WHEN online THEN labels END)['env'] = 'prod'
array_contains(slice(CASE WHEN kind = 'motor' THEN samples END, 2, 2), 60.0D)
temperature > thresholds.high OR temperature < thresholds.low
temperature - thresholds.high >= 10 AND online
(temperature * 9 / 5) + 32 > 200
humidity > 90 AND temperature BETWEEN -20 AND 0
battery < 15 AND NOT online
battery / 100.0 < 0.2
device_id LIKE 'pump-%' AND rpm > 2500
regexp_replace(device_id, '[0-9]', '') = 'pump-'
CAST(regexp_extract(device_id, '(\d+)$', 1) AS INT) % 2 = 1
CAST(substring_index(device_id, '-', -1) AS INT) BETWEEN 1 AND 99
get_json_object(payload, '$.voltage') < 3.0
CAST(get_json_object(payload, '$.voltage') AS DOUBLE) < 3.0
get_json_object(payload, '$.error.code') IS NOT NULL
from_json(payload, 'voltage DOUBLE, mode STRING').voltage > 3.3
from_json(payload, 'STRUCT<error: STRUCT<code: STRING>>').error.code = 'E42'
from_json(payload, 'MAP<STRING, STRING>')['mode'] = 'auto'
parse_json(payload):voltage::DOUBLE > 3
variant_get(try_parse_json(payload), '$.readings[0].v', 'INT') = 1
samples[0] > 50 AND samples[1] < samples[0]
array_max(samples) > 99 OR array_min(samples) < -1
exists(samples, s -> s > 99.5)
size(filter(samples, s -> s > 50)) >= 2
aggregate(samples, 0D, (a, s) -> a + s) / size(samples) > 50
reduce(samples, CAST(0 AS DOUBLE), (a, s) -> a + coalesce(s, 0D), a -> a / 3) > 55
sort_array(samples)[1] > 20
try_element_at(samples, -1) > 75
array_position(counts, 7) > 0
exists(counts, c -> c % 2 = 1)
shiftright(flags, 2) & 1 = 1
labels['env'] = 'prod' AND labels['room'] IS NOT NULL
map_contains_key(labels, 'owner')
labels.env IN ('prod', 'staging')
size(map_keys(labels)) < 2
location.floor >= 4 AND location.site ILIKE 'mad%'
acos(sin(radians(location.lat)) * sin(radians(40.4)) + cos(radians(location.lat)) * cos(radians(40.4)) * cos(radians(location.lon + 3.7))) * 6371 < 100
datediff(_time, installed) > 365 * 3
months_between(_time, installed) > 36
installed < add_months(CAST(_time AS DATE), -24)
installed < date_sub(CAST(_time AS DATE), 90)
at < _time - INTERVAL '15' MINUTE
timestampdiff(MINUTE, at, _time) > 15
_time - at > INTERVAL '1' HOUR
split_part(firmware, '.', 1)::INT < 2
firmware < '2.0' AND firmware NOT LIKE '%-rc%'
firmware RLIKE '^[0-9]+\.[0-9]+(\.[0-9]+)?$'
hex(raw) LIKE '00FF%'
length(raw) = 3 AND substring(hex(raw), 1, 2) = '00'
conv(substring(hex(raw), 3, 2), 16, 10) = '255'
isnan(temperature) OR temperature IS NULL
nvl(temperature, 0) = 0
CAST(temperature AS STRING) = '81.25'
CAST(temperature AS INT) > 80
ceil(temperature) - floor(temperature) = 1
