level = 'ERROR'
level IN ('ERROR', 'FATAL') AND service = 'checkout'
upper(level) = 'ERROR'
level <> 'DEBUG'
message LIKE '%timeout%'
message ILIKE '%timed out%'
message LIKE '%OutOfMemory%' OR message LIKE '%heap space%'
message LIKE ANY ('%refused%', '%reset by peer%')
message NOT LIKE ALL ('%healthcheck%', '%metrics%')
message RLIKE 'user [0-9]+ not found'
message REGEXP '^(GET|POST) /api'
message RLIKE '\bERROR\b'
regexp_like(message, '(?i)exception')
regexp_extract(message, 'took ([0-9]+) ms', 1) > '1000'
CAST(regexp_extract(message, 'took ([0-9]+) ms', 1) AS INT) > 1000
try_cast(regexp_extract(message, 'took ([0-9]+)', 1) AS INT) > 500
regexp_count(message, 'retry') > 2
regexp_extract_all(message, '([0-9]+)', 1)[0] = '42'
contains(message, 'deadlock')
startswith(message, 'panic')
endswith(url, '.php')
instr(message, 'denied') > 0
locate('denied', message) > 0
position('denied' IN message) > 0
length(message) > 100
char_length(trim(message)) = 0
status >= 500
status BETWEEN 400 AND 499 AND status NOT IN (401, 404)
status / 100 = 5
status div 100 = 5
floor(status / 100) = 4
CAST(status AS STRING) LIKE '5%'
status = '503'
status IS NULL AND level = 'ERROR'
duration_ms > 2000
duration_ms / 1000 > 2.5
duration_ms > 5 * 60 * 1000
bytes > 10 * 1024 * 1024
bytes / 1024 / 1024 >= 1
bytes > 3L * 1024 * 1024 * 1024
method = 'POST' AND url LIKE '/api/v1/%'
method IN ('PUT', 'DELETE') AND status = 200
url LIKE '/admin/%' AND client_ip NOT LIKE '10.%'
url LIKE '%\_secret' ESCAPE '\'
url LIKE '%!_secret' ESCAPE '!'
split(url, '/')[1] = 'api'
split(url, '\?')[0] = '/login'
element_at(split(url, '/'), -1) = 'login'
substring_index(url, '?', 1) = '/login'
parse_url(concat('http://x', url), 'PATH') = '/login'
lower(user_agent) LIKE '%bot%'
user_agent IS NULL OR user_agent = ''
user_agent RLIKE 'curl|wget|python'
client_ip LIKE '192.168.%'
client_ip RLIKE '^(10|192\.168)\.'
split(client_ip, '[.]')[0] = '10'
CAST(split_part(client_ip, '.', 4) AS INT) = 1
headers['x-forwarded-for'] IS NOT NULL
headers['content-type'] = 'application/json'
lower(headers['content-type']) LIKE '%json%'
headers['x-request-id'] IS NULL
map_contains_key(headers, 'authorization')
array_contains(map_keys(headers), 'cookie')
exists(map_keys(headers), k -> k LIKE 'x-%')
exists(map_keys(headers), k -> lower(k) = 'cookie')
size(headers) > 20
cardinality(map_filter(headers, (k, v) -> length(v) > 10)) > 0
trace.id = 'abc123'
trace.sampled
trace.sampled = true AND duration_ms > 1000
NOT trace.sampled OR trace.sampled IS NULL
trace.span IS NOT NULL
k8s.namespace = 'prod' AND level = 'ERROR'
k8s.pod LIKE 'checkout-%'
k8s.labels['app'] = 'checkout'
k8s.labels.app = 'checkout'
k8s.labels['tier'] IS NULL
regexp_replace(k8s.pod, '-[a-z0-9]+$', '') = 'checkout'
array_contains(tags, 'slow')
array_contains(tags, lower(service))
exists(tags, t -> t ILIKE 'team-%')
tags[0] = 'slow'
size(tags) > 0 AND tags[0] = 'slow'
get(tags, 0) = 'slow'
array_position(tags, 'slow') = 1
array_contains(array('a', 'b'), level)
arrays_overlap(tags, array('pci', 'gdpr'))
size(array_union(tags, array('slow'))) = size(tags)
size(array_except(array('slow', 'team-a'), tags)) = 0
size(stack) > 3
exists(stack, s -> s LIKE '%NullPointer%')
stack[0] LIKE '%Exception%'
array_join(stack, ' ') LIKE '%Timeout%'
element_at(stack, 1) = 'main'
concat_ws('|', tags) = 'slow|team-a'
get_json_object(body, '$.user.id') = '42'
get_json_object(body, '$.error') IS NOT NULL
get_json_object(body, '$.error.code') IN ('E1', 'E2')
CAST(get_json_object(body, '$.latency') AS DOUBLE) > 1.5
get_json_object(body, '$.items[0].sku') = 'A-1'
get_json_object(body, '$.user.name') ILIKE 'ann%'
json_array_length(get_json_object(body, '$.items')) > 1
array_contains(json_object_keys(body), 'error')
at >= '2026-11-20T00:00:00Z'
at BETWEEN '2026-11-20' AND '2026-11-21'
at > TIMESTAMP '2026-11-20 08:00:00 Europe/Madrid'
date_format(at, 'HH:mm:ss') >= '22:00:00'
date_format(at, 'EEE') IN ('Sat', 'Sun')
hour(at) < 6 OR hour(at) >= 22
dayofweek(at) IN (1, 7)
second(at) = 0
EXTRACT(WEEK FROM at) = 47
EXTRACT(SECOND FROM at) > 30
date_part('minute', at) = 30
CAST(at AS DATE) = '2026-11-20'
to_date(at) = DATE '2026-11-20'
unix_timestamp(at) % 60 = 0
to_unix_timestamp(at) > 1763600000
at + INTERVAL 1 HOUR > _time
_time - INTERVAL '15' MINUTE < at
_time - at > INTERVAL '0 00:10:00' DAY TO SECOND
coalesce(status, 0) >= 500
coalesce(headers['x-user'], get_json_object(body, '$.user.name'), 'anonymous') = 'anonymous'
CASE WHEN status >= 500 THEN 'bad' WHEN status >= 400 THEN 'poor' ELSE 'good' END = 'bad'
CASE level WHEN 'FATAL' THEN 3 WHEN 'ERROR' THEN 2 ELSE 1 END >= 2
nullif(trim(service), '') IS NULL
concat(service, '/', host) = 'checkout/web-1'
service || '@' || host = 'checkout@web-1'
md5(message) = 'd41d8cd98f00b204e9800998ecf8427e'
sha2(client_ip, 256) LIKE '0%'
crc32(service) % 10 = 3
hash(trace.id) % 100 < 10
pmod(hash(client_ip), 10) = 0
levenshtein(service, 'checkout') <= 2
initcap(level) = 'Error'
translate(host, '0123456789', '##########') = 'web-#'
replace(message, ' ', '') = ''
ltrim('0', host) = host
repeat('=', 3) = substr(message, 1, 3)
ascii(level) = 69
reverse(host) LIKE '1-%'
find_in_set(level, 'ERROR,FATAL') > 0
str_to_map(message, ';', '=')['code'] = '42'
(level = 'ERROR' OR status >= 500) AND service IN ('checkout', 'cart') AND NOT (message LIKE '%retry%')
level = 'ERROR' AND (service IS NULL OR service != 'batch')
level IN ('ERROR', 'FATAL') AND service NOT IN ('batch', 'cron')
lower(level) = 'error' AND status >= 500
status BETWEEN 500 AND 599 AND method = 'POST'
status DIV 100 = 4
left(CAST(status AS STRING), 1) = '5'
CAST(status AS STRING) LIKE '5__'
message ILIKE ANY ('%timeout%', '%timed out%', '%deadlock%')
message RLIKE '(?i)out ?of ?memory'
message LIKE '%OutOfMemory%' AND level <> 'DEBUG'
regexp_like(message, '\b(panic|fatal)\b')
contains(lower(message), 'access denied')
CAST(regexp_extract(message, 'took (\d+) ms', 1) AS INT) > 1000
regexp_count(message, 'retry') >= 3
duration_ms > 1000 * 2
duration_ms / 1000.0 > 2.5
bytes / 1024 / 1024 >= 10
url LIKE '/api/v_/%' AND method IN ('PUT', 'POST', 'DELETE')
url RLIKE '^/api/v[0-9]+/(pay|refund)'
parse_url(concat('http://x', url), 'QUERY', 'next') IS NOT NULL
user_agent IS NULL OR user_agent = '' OR user_agent RLIKE '(curl|wget|python-requests)/'
client_ip LIKE '10.%' OR client_ip RLIKE '^192\.168\.'
split(client_ip, '\.')[0] = '10'
CAST(split(client_ip, '[.]')[3] AS INT) > 200
element_at(split(client_ip, '\.'), 1) IN ('10', '172', '192')
headers['content-type'] ILIKE 'application/json%'
lower(headers['authorization']) LIKE 'bearer %'
k8s.namespace = 'prod' AND k8s.labels['app'] = 'checkout'
k8s.pod RLIKE '^checkout-[a-z0-9]+$'
trace.sampled AND duration_ms > 500
NOT coalesce(trace.sampled, false)
array_contains(tags, 'slow') AND duration_ms >= 2500
any_match(tags, t -> t LIKE 'team-%')
stack[0] LIKE '%NullPointerException%'
array_join(stack, '\n') LIKE '%main%'
get_json_object(body, '$.user.id') = 42
get_json_object(body, '$.items[*].sku') LIKE '%B-2%'
from_json(body, 'user STRUCT<id: INT, name: STRING>').user.id = 42
from_json(body, 'items ARRAY<STRUCT<sku: STRING>>').items[0].sku = 'A-1'
size(from_json(body, 'items ARRAY<STRUCT<sku: STRING>>').items) > 1
body LIKE '%"error"%'
hour(at) BETWEEN 22 AND 23 OR hour(at) < 6
date_format(at, 'EEEE') IN ('Saturday', 'Sunday')
at BETWEEN '2026-11-20 00:00:00' AND '2026-11-20 23:59:59'
at::DATE = '2026-11-20'
date(at) >= date_sub(date(_time), 1)
length(message) > 60 OR length(trim(message)) = 0
md5(coalesce(message, '')) = 'd41d8cd98f00b204e9800998ecf8427e'
levenshtein(service, 'checkout') BETWEEN 1 AND 2
