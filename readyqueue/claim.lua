-- claim: leases due events to a session, first from ready, then straight from the given buckets; a caller that can
-- take none carries what is due from the buckets to ready instead, for others. In a paused lane all can take none, and
-- nobody is woken.
-- KEYS 1 ready  2 bell  3 pool  4 held  5 sessions  6 attempts  7 again  8 meta  9 stats  10.. buckets that may be due
-- ARGV 1 bucket counts as the caller knows them, or '*' not to look  2 most events to claim  3 most ids to carry to ready if it
--      can take none  4 most ids in ready  5 session  6 lease (ms)  7 '1' if the session should hold
--      events already  8 alarm channel  9 most bytes of records to return  10 '1' to push the session's deadline on
--      11 bucket counts to register before the caller may claim: events that fail go to buckets of its own count
-- returns {'ok', now (us), ids left in ready, head of each bucket (due in ms as text, or ''), ids, records, attempts
--      entries (empty if there are none at all), 1 if the lane is paused, else 0}
--      or {'counts', the bucket counts in Redis}: nothing was done, learn them and call again
--      or {'lost'}: the session's leases were taken away; nothing was done
local ready, bell, pool, held, sessions, attempts, again, meta, stats =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local known, limit, carry, high_water, session = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local lease, holds, channel, most_bytes, extend = tonumber(ARGV[6]), ARGV[7] == '1', ARGV[8], tonumber(ARGV[9]), ARGV[10] == '1'
local wanted = ARGV[11]

local facts = redis.call('HMGET', meta, 'buckets', 'paused')
local paused = facts[2] and true
if known ~= '*' and (facts[1] or '') ~= known then
  return { 'counts', facts[1] or '' }
end
local now, now_us = clock()
local lives = (holds or not extend) and redis.call('ZSCORE', sessions, session)
if holds and not lives then
  abandon(held, sessions, session, channel, now_us)
  return { 'lost' }
end
if paused then
  limit = 0
end
local ids = limit > 0 and redis.call('LPOP', ready, limit) or {}
local popped = #ids
if limit > 0 then
  carry = 0
else
  carry = math.min(carry, high_water - redis.call('LLEN', ready))
end

local heads = {}
for i = 10, #KEYS do
  local bucket = KEYS[i]
  local want = limit > 0 and limit - #ids or carry
  if want > 0 then
    local due = redis.call('ZRANGEBYSCORE', bucket, '-inf', now, 'LIMIT', 0, want)
    if #due > 0 then
      redis.call('ZREMRANGEBYRANK', bucket, 0, #due - 1)
      if limit > 0 then
        for j = 1, #due do
          ids[#ids + 1] = due[j]
        end
      else
        redis.call('RPUSH', ready, unpack(due))
        carry = carry - #due
      end
    end
  end
  heads[i - 9] = redis.call('ZRANGE', bucket, 0, 0, 'WITHSCORES')[2] or ''
end

local claimed = #ids
local records = {}
local bytes = 0
local taken = 0
while taken < #ids and bytes < most_bytes do
  local upto = math.min(taken + 64, #ids)
  local got = redis.call('HMGET', pool, unpack(ids, taken + 1, upto))
  for i = 1, #got do
    records[taken + i] = got[i]
    bytes = bytes + (got[i] and #got[i] or 0)
  end
  taken = upto
end
for i = #ids, taken + 1, -1 do -- too many bytes: back to the front, in their order
  redis.call('LPUSH', ready, ids[i])
  ids[i] = nil
end

local states = {}
if taken > 0 then
  redis.call('SADD', held, unpack(ids))
  if extend or not lives then
    local deadline = text(now + lease)
    if redis.call('ZADD', sessions, deadline, session) == 1 then
      alarm(channel, now_us, { 'session=' .. deadline })
    end
  end
  if redis.call('EXISTS', attempts, again) > 0 then
    states = redis.call('HMGET', attempts, unpack(ids))
    redis.call('HDEL', again, unpack(ids))
  end
  redis.call('HINCRBY', stats, 'delivered', taken)
end

if limit > 0 and known ~= '*' and known ~= wanted then
  redis.call('HSET', meta, 'buckets', wanted)
end
local left = (limit == 0 or popped == limit or taken < claimed) and redis.call('LLEN', ready) or 0
if left > 0 and not paused then
  ring(ready, bell)
end
return { 'ok', now_us, left, heads, ids, records, states, paused and 1 or 0 }
