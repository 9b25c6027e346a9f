"""The evaluator's Redis scripts; each script reads and writes atomically."""

from __future__ import annotations

__all__ = ["COUNT", "GIVE_UP", "PIN"]

_CONFIRMED = """
local function confirmed(key)
  local epoch = redis.call('GET', key)
  if not epoch then return nil end
  epoch = cjson.decode(epoch)
  if epoch.run_id ~= string.match(redis.call('INFO', 'server'), 'run_id:(%x+)') then return nil end
  return epoch
end
"""
"""A Lua function that returns the `EpochNote` under a key; nil if no tables are confirmed for this run of Redis."""

# KEYS: epoch, version, pins, streams, pauses, next batch, held, and the stream's fence if the caller has one. ARGV:
# stream, batch, the holder of the fence. Returns one of: the pin as text; nil if the tables are not confirmed, if their
# version is lost, or if the stream is held; an empty text if another evaluator has the fence; "committed" if the batch
# is committed. For a dropped stream the pin has version 0, whose tables have no rows. The script finds the revision of
# the stream's declaration by a pattern in the JSON. No text within the JSON can match this pattern, since quotes within
# texts are escaped.
PIN = (
    _CONFIRMED
    + """
local epoch = confirmed(KEYS[1])
if not epoch then return nil end
local pinned = redis.call('HGET', KEYS[3], ARGV[2])
if pinned and string.match(pinned, '^%d+') == tostring(epoch.epoch) then return pinned end
if tonumber(ARGV[2]) < tonumber(redis.call('GET', KEYS[6]) or 0) then return 'committed' end
local version = redis.call('HGET', KEYS[2], ARGV[1])
local stream = redis.call('HGET', KEYS[4], ARGV[1])
local live = stream ~= false
if redis.call('HEXISTS', KEYS[2], '') == 0 or live ~= (version ~= false) then return nil end
if not live then return epoch.epoch .. ':0' end
if KEYS[8] and redis.call('GET', KEYS[8]) ~= ARGV[3] then return '' end
if redis.call('EXISTS', KEYS[7]) == 1 then return nil end
pinned = epoch.epoch .. ':' .. version
local paused = {}
for _, each in ipairs(redis.call('HKEYS', KEYS[5])) do
  local of, group = string.match(each, '^(.*)/(.*)$')
  if of == ARGV[1] then table.insert(paused, group) end
end
local revision = string.match(stream, '"revision":(%d+)') or '1'
if #paused > 0 or revision ~= '1' then pinned = pinned .. ':' .. table.concat(paused, ',') end
if revision ~= '1' then pinned = pinned .. ':' .. revision end
redis.call('HSET', KEYS[3], ARGV[2], pinned)
return pinned
"""
)

# KEYS: matches, counted, output, next batch, and the stream's fence if the caller has one. ARGV: source partition,
# micro-batch, the fields of `Output`, the `PartitionWatermark` or an empty text, the holder of the fence, values of
# `MatchTally`. Returns the number of values in the list `matches`; 0 if no values are given or the micro-batch was
# counted before; -1 if another evaluator has the fence.
COUNT = """
if KEYS[5] and redis.call('GET', KEYS[5]) ~= ARGV[9] then return -1 end
if tonumber(string.match(ARGV[2], '%d+$')) < tonumber(redis.call('GET', KEYS[4]) or 0) then return 0 end
if redis.call('HGET', KEYS[2], ARGV[1]) == ARGV[2] then return 0 end
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
for at, field in ipairs({'matches', 'results', 'nbytes', 'late', 'future'}) do
  if ARGV[2 + at] ~= '0' then redis.call('HINCRBY', KEYS[3], field, ARGV[2 + at]) end
end
if ARGV[8] ~= '' then redis.call('HSET', KEYS[3], 'watermark/' .. ARGV[1], ARGV[8]) end
if not ARGV[10] then return 0 end
return redis.call('RPUSH', KEYS[1], unpack(ARGV, 10))
"""

# KEYS: the owner of a stream, epoch, versions, streams, and the stream's other keys. ARGV: the holder, the stream.
# Gives up the ownership. For a dropped stream, the script also removes the stream's keys: DROP removed them before, but
# the stream's last tasks may have written some again. While the tables are not confirmed, the keys stay, since the
# stream may be live and only missing in Redis.
GIVE_UP = (
    _CONFIRMED
    + """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return end
redis.call('DEL', KEYS[1])
if confirmed(KEYS[2]) and redis.call('HEXISTS', KEYS[3], '') == 1 and redis.call('HEXISTS', KEYS[4], ARGV[2]) == 0 then
  redis.call('UNLINK', unpack(KEYS, 5))
end
"""
)
