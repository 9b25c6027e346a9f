event = 'login' AND NOT success
event = 'login' AND success = false AND failed >= 5
event LIKE 'auth.%'
event IN ('login', 'sudo', 'su')
user_name = 'root'
lower(user_name) IN ('root', 'admin', 'administrator')
user_name ILIKE 'adm%'
user_name RLIKE '[^a-z0-9_.-]'
user_name IS NULL OR uid = 0
uid < 1000 AND user_name <> 'root'
uid BETWEEN 0 AND 99
src_ip LIKE '10.%' AND dst_ip NOT LIKE '10.%'
NOT (src_ip LIKE '10.%' OR src_ip LIKE '192.168.%' OR src_ip RLIKE '^172\.(1[6-9]|2[0-9]|3[01])\.')
src_ip = dst_ip
src_ip RLIKE '^([0-9]{1,3}\.){3}[0-9]{1,3}$'
substring_index(src_ip, '.', 3) = '203.0.113'
split(src_ip, '\.')[0] = '203'
CAST(split(src_ip, '\.')[0] AS INT) >= 224
CAST(split(src_ip, '\.')[0] AS INT) * 256 + CAST(split(src_ip, '\.')[1] AS INT) = 51968
port IN (22, 23, 3389)
port < 1024 AND proto = 'udp'
port NOT IN (80, 443) AND proto = 'tcp'
port = '22'
port BETWEEN 6660 AND 6669
array_contains(ports, 3389)
exists(ports, p -> p BETWEEN 6660 AND 6669)
size(ports) > 100
size(array_distinct(ports)) > 3
forall(ports, p -> p < 1024)
array_contains(ports, port)
array_max(ports) > 60000
sort_array(ports)[0] = 22
size(array_intersect(ports, array(22, 23, 3389))) >= 2
arrays_overlap(ports, array(4444, 31337))
size(array_except(ports, array(80, 443))) > 0
bytes_out > 100 * 1024 * 1024
bytes_out > 10 * bytes_in
bytes_out > bytes_in AND bytes_in = 0
bytes_out / nullif(bytes_in, 0) > 20
try_divide(bytes_out, bytes_in) > 20
coalesce(bytes_out, 0) + coalesce(bytes_in, 0) > 1000000
log2(bytes_out) > 20
score > 0.9
score >= 0.75 AND action = 'allow'
round(score, 1) >= 0.9
score > 0.5 OR failed > 3
score * 100 > 95
CAST(score * 100 AS INT) > 90
country NOT IN ('ES', 'FR', 'PT')
country IS NULL
country <> 'ES' AND hour(at) < 6
coalesce(country, '??') = '??'
at BETWEEN '2026-11-20T00:00:00Z' AND '2026-11-20T05:59:59Z'
hour(from_utc_timestamp(at, 'Europe/Madrid')) NOT BETWEEN 8 AND 19
hour(from_utc_timestamp(at, 'America/New_York')) < 7
weekday(at) >= 5
dayofweek(from_utc_timestamp(at, 'Asia/Tokyo')) IN (1, 7)
EXTRACT(HOUR FROM at) BETWEEN 0 AND 5
EXTRACT(DAY FROM at) = 20
EXTRACT(EPOCH FROM at) > 0
date_trunc('hour', at) = TIMESTAMP '2026-11-20 03:00:00'
at > TIMESTAMP '2026-11-20 00:00:00+01:00'
CAST(at AS DATE) - last_login > INTERVAL '90' DAY
datediff(at, last_login) > 90
last_login < DATE '2026-08-01'
last_login < add_months(CAST(at AS DATE), -3)
last_login IS NULL AND success
last_login + INTERVAL 90 DAYS < at
last_login + 90 < DATE '2026-11-20'
months_between(at, last_login) > 6
unix_date(last_login) = 20700
_time < at
at > _time + INTERVAL 1 MINUTE
abs(timestampdiff(SECOND, at, _time)) > 60
cmd LIKE '%/etc/passwd%'
cmd ILIKE '%invoke-webrequest%'
cmd LIKE '%base64 -d%' AND cmd LIKE '%|%sh%'
cmd RLIKE '(curl|wget) .*\| *(ba)?sh'
cmd RLIKE '(?i)\bmimikatz\b'
cmd LIKE ANY ('%nc -e%', '%ncat%', '%socat%')
regexp_extract(cmd, '(https?)://([^/ ]+)', 2) = 'evil.example'
regexp_like(cmd, 'rm +-rf +/')
regexp_count(cmd, '\|') >= 2
length(cmd) > 200
length(cmd) - length(replace(cmd, '|', '')) >= 2
contains(lower(cmd), 'powershell')
instr(cmd, 'sudo') = 1
startswith(cmd, 'sudo')
decode(unbase64('c2g='), 'UTF-8') = 'sh'
unbase64('c2g=') IS NOT NULL
process.name = 'powershell.exe'
process.name IN ('cmd.exe', 'powershell.exe') AND process.parent.name = 'winword.exe'
process.parent.name ILIKE '%word%'
process.parent.pid = 1
process.path NOT LIKE 'C:\Windows\%'
process.path LIKE '%\\Temp\\%'
process.path LIKE '/tmp/%'
endswith(process.path, '.exe')
process.pid = process.parent.pid
element_at(split(process.path, '/'), -1) <> process.name
process IS NULL
process.parent IS NULL AND process.pid > 1
hashes['md5'] = 'd41d8cd98f00b204e9800998ecf8427e'
lower(hashes['sha256']) IN ('ab12', 'cd34')
hashes.sha256 = 'ab12'
hashes['sha1'] IS NULL
map_contains_key(hashes, 'sha256')
exists(map_values(hashes), h -> h LIKE 'ab%')
array_contains(map_values(hashes), 'ab12')
size(hashes) = 0
upper(element_at(hashes, 'md5')) RLIKE '^[0-9A-F]{32}$'
array_contains(roles, 'admin')
NOT array_contains(roles, 'admin') AND event = 'sudo'
exists(roles, r -> lower(r) = 'admin')
exists(roles, r -> r IN ('admin', 'owner'))
exists(roles, r -> r LIKE '%admin%') AND country <> 'ES'
size(roles) > 5 OR roles IS NULL
roles[0] = 'admin'
array_position(roles, 'guest') > 0
size(array_except(roles, array('user', 'guest'))) > 0
array_join(roles, ',') RLIKE 'admin|owner'
array_sort(roles)[0] = 'admin'
concat_ws(',', sort_array(roles)) = 'admin,user'
array_contains(array_union(roles, array('guest')), user_name)
array_contains(concat(roles, array('x')), 'x')
array_append(roles, 'x')[0] = 'admin'
size(array_repeat(user_name, 3)) = 3
get_json_object(payload, '$.mfa') = 'false'
get_json_object(payload, '$.geo.lat') IS NULL
CAST(get_json_object(payload, '$.risk.score') AS DOUBLE) > 0.7
CAST(get_json_object(payload, '$.attempts') AS INT) >= 3
get_json_object(payload, '$.tags[0]') = 'tor'
get_json_object(payload, '$.agent') ILIKE '%sqlmap%'
fingerprint = X'DEADBEEF'
hex(fingerprint) LIKE 'DEAD%'
fingerprint IS NULL
hex(fingerprint) = 'DEADBEEF'
sha1(user_name) = 'dc76e9f0c0006e8f919e0c515c66dbba3982f785'
sha2(user_name, 256) = hashes['sha256']
base64(fingerprint) = '3q2+7w=='
success IS FALSE
success IS NOT TRUE
success AND failed > 10
NOT success AND score IS NOT NULL
failed > 3 AND failed <= 10
failed + 0 = 5
failed = 5.0
failed > '4'
-failed < -4
bool_or(success) = true
CASE WHEN user_name = 'root' THEN failed >= 1 ELSE failed >= 5 END
CASE WHEN proto = 'tcp' AND port = 22 THEN 'ssh' WHEN port = 3389 THEN 'rdp' END = 'ssh'
if(country = 'ES', 0, 1) + if(success, 0, 1) = 2
nvl2(country, 0, 1) = 1
greatest(failed, 3) > 3
least(bytes_in, bytes_out) = 0
concat(user_name, '@', src_ip) = 'root@203.0.113.9'
user_name || ':' || country = 'root:KP'
(action = 'deny' AND port = 22) OR (action = 'allow' AND country IN ('KP', 'IR'))
success = 1
uid = 'abc'
at > 5
src_ip > 10
array_contains(roles, 5)
roles = 'admin'
process = 'x'
hashes = NULL
nosuch = 1
unknown_function(uid) > 1
last_login > 20261120
event = 'login' AND NOT success AND failed >= 5
event LIKE 'auth.%' OR event IN ('login', 'sudo', 'su')
user_name IN ('root', 'admin', 'Administrator') AND src_ip NOT LIKE '10.%'
lower(user_name) = 'administrator'
src_ip RLIKE '^(10\.|192\.168\.|172\.(1[6-9]|2[0-9]|3[01])\.)'
split(src_ip, '\.')[3] = split(dst_ip, '\.')[3]
port IN (22, 23, 3389) AND action = 'allow'
port NOT BETWEEN 1 AND 1024
bytes_out / nullif(bytes_in, 0) > 100
coalesce(bytes_out, 0) + coalesce(bytes_in, 0) > 104857600
bytes_out > 100 * power(1024, 2)
country NOT IN ('ES', 'FR', 'DE') AND success
country IS DISTINCT FROM 'ES'
cmd RLIKE 'curl .*\| *(ba)?sh'
cmd LIKE '%rm -rf%' OR cmd LIKE '%/etc/passwd%'
lower(cmd) LIKE '%mimikatz%'
process.parent.name ILIKE 'winword.exe' AND process.name ILIKE 'powershell%'
lower(process.path) LIKE '%\temp\%'
process.path LIKE '/tmp/%' OR process.path LIKE '/dev/shm/%'
hashes['md5'] IN ('d41d8cd98f00b204e9800998ecf8427e', 'ffffffffffffffffffffffffffffffff')
lower(hashes['sha256']) = 'ab12'
array_contains(roles, 'admin') AND hour(at) NOT BETWEEN 7 AND 19
size(roles) > 3
size(array_intersect(roles, array('admin', 'owner'))) > 0
size(array_distinct(ports)) >= 3
get_json_object(payload, '$.risk.score') > 0.7
from_json(payload, 'mfa BOOLEAN, risk STRUCT<score: DOUBLE>').risk.score > 0.7
from_json(payload, 'tags ARRAY<STRING>').tags[0] = 'tor'
array_contains(from_json(payload, 'tags ARRAY<STRING>').tags, 'tor')
score >= 0.9 AND failed > 3
round(score * 100) >= 90
last_login < _time - INTERVAL 90 DAYS
datediff(CAST(_time AS DATE), last_login) > 90
date_add(last_login, 90) < date(_time)
_time > last_login + INTERVAL 3 MONTHS
EXTRACT(DOW FROM at) IN (1, 7)
extract(hour from at) < 6
dayofweek(at) = 1 OR dayofweek(at) = 7
at > timestamp '2026-11-20 00:00:00' + interval '2 hours'
base64(fingerprint) LIKE '3q2%'
uid < 1000 AND uid > 0
if(success, failed > 10, failed > 3)
