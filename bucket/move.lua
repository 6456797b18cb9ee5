-- move: takes an event that nobody holds out of where it lies, and forgets it (cancel) or schedules it anew (reschedule,
-- requeue).
-- KEYS 1 pool  2 ready  3 bell  4 meta  5 stats  6 attempts  7 again  8 dead  9.. buckets in which the id may lie, its home first
-- ARGV 1 bucket counts as the caller knows them  2 alarm channel  3 id  4 index of the home bucket
--      5 new due time (ms), or '' to forget the event  6 bucket counts to register before the event may go to its home
--      7 '1' to take it from dead only (requeue)
-- returns {'ok'}, {'missing'}, {'leased'}, or {'alive', where it lies: scheduled, ready or leased} if it had to be dead
--      or {'counts', the bucket counts in Redis}: nothing was done, learn them and call again
local pool, ready, bell, meta, stats, attempts, again, dead =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local known, channel, id, index, due, wanted, of_dead =
  ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7] == '1'

local stored = redis.call('HGET', meta, 'buckets') or ''
if stored ~= known then
  return { 'counts', stored }
end
local record = redis.call('HGET', pool, id)
if not record then
  return { 'missing' }
end
if of_dead and not redis.call('ZSCORE', dead, id) then
  for i = 9, #KEYS do
    if redis.call('ZSCORE', KEYS[i], id) then
      return { 'alive', 'scheduled' }
    end
  end
  return { 'alive', redis.call('LPOS', ready, id) and 'ready' or 'leased' }
end

local taken = 0
for i = 9, #KEYS do
  if taken == 0 then
    taken = redis.call('ZREM', KEYS[i], id)
  end
end
if taken == 0 then
  taken = redis.call('ZREM', dead, id)
  if taken == 1 then
    redis.call('HDEL', attempts, id)
  end
end
if taken == 0 then
  taken = redis.call('LREM', ready, 1, id)
end
if taken == 0 then
  return { 'leased' }
end

redis.call('HDEL', again, id)
if due == '' then
  redis.call('HDEL', pool, id)
  redis.call('HDEL', attempts, id)
  redis.call('HINCRBY', stats, 'cancelled', 1)
  return { 'ok' }
end
if known ~= wanted then
  redis.call('HSET', meta, 'buckets', wanted)
end
local alarms = {}
local _, now_us = clock()
redis.call('HSET', pool, id, retime(record, due))
schedule(KEYS[9], index, id, due, alarms)
alarm(channel, now_us, alarms)
redis.call('HINCRBY', stats, 'rescheduled', 1)
return { 'ok' }
