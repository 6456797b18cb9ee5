-- trim: forgets dead events, the oldest first: those that died too long ago, then those that are too many.
-- KEYS 1 dead  2 pool  3 attempts  4 stats
-- ARGV 1 how long dead events are kept (ms)  2 most dead events  3 most ids to forget
-- returns {number forgotten because they were too old, because there were too many}
local dead, pool, attempts, stats = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local retention, most, limit = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])

local before = text(clock() - retention)
local old = #redis.call('ZRANGEBYSCORE', dead, '-inf', '(' .. before, 'LIMIT', 0, limit)
local excess = math.max(0, math.min(redis.call('ZCARD', dead) - old - most, limit - old))
if old + excess == 0 then
  return { 0, 0 }
end
local ids = redis.call('ZRANGE', dead, 0, old + excess - 1)
redis.call('ZREMRANGEBYRANK', dead, 0, #ids - 1)
redis.call('HDEL', pool, unpack(ids))
redis.call('HDEL', attempts, unpack(ids))
redis.call('HINCRBY', stats, 'dropped', #ids)
return { old, excess }
