-- purge: forgets events that nobody holds, wherever they lie.
-- KEYS 1 pool  2 ready  3 bell  4 meta  5 stats  6 attempts  7 again  8 dead  9.. all buckets, or none to spare what is
--      scheduled
-- ARGV 1 bucket counts as the caller knows them  2 most events to forget  3 '1' to forget what is dead  4 '1' to forget
--      what is ready
-- returns {'ok', number of events forgotten}: if it is less than the most, there was no other of these
--      or {'counts', the bucket counts in Redis}: nothing was done, learn them and call again
local pool, ready, bell, meta, stats, attempts, again, dead =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local known, limit, of_dead, of_ready = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1', ARGV[4] == '1'

local stored = redis.call('HGET', meta, 'buckets') or ''
if stored ~= known then
  return { 'counts', stored }
end
local left = limit

local function forget(ids)
  redis.call('HDEL', pool, unpack(ids))
  redis.call('HDEL', attempts, unpack(ids))
  redis.call('HDEL', again, unpack(ids))
  left = left - #ids
end

for i = of_dead and 8 or 9, #KEYS do -- dead, then the buckets
  local ids = left > 0 and redis.call('ZRANGE', KEYS[i], 0, left - 1) or {}
  if #ids > 0 then
    redis.call('ZREMRANGEBYRANK', KEYS[i], 0, #ids - 1)
    forget(ids)
  end
end
local ids = of_ready and left > 0 and redis.call('LPOP', ready, left)
if ids and #ids > 0 then
  forget(ids)
end
if redis.call('EXISTS', ready) == 0 then
  redis.call('DEL', bell)
end
if left < limit then
  redis.call('HINCRBY', stats, 'cancelled', limit - left)
end
return { 'ok', limit - left }
