-- requeue: schedules dead events anew.
-- KEYS 1 pool  2 ready  3 bell  4 meta  5 stats  6 attempts  7 again  8 dead  9.. home buckets of the ids
-- ARGV 1 bucket counts as the caller knows them  2 bucket counts to register before events may go to their homes
--      3 alarm channel  4 due time (ms)  5 bytes of records after which to stop  6.. for each event id, KEYS index of its
--      home, index of that bucket
-- returns {'ok', number of ids looked at, number of those that were dead and are scheduled now}
--      or {'counts', the bucket counts in Redis}: nothing was done, learn them and call again
local pool, meta, stats, attempts, again, dead = KEYS[1], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local known, wanted, channel, due, most_bytes = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])

local stored = redis.call('HGET', meta, 'buckets') or ''
if stored ~= known then
  return { 'counts', stored }
end
local alarms = {}
local at, moved, bytes = 6, 0, 0
while at < #ARGV and bytes < most_bytes do
  local id = ARGV[at]
  local record = redis.call('HGET', pool, id)
  if record and redis.call('ZREM', dead, id) == 1 then
    if moved == 0 and known ~= wanted then
      redis.call('HSET', meta, 'buckets', wanted)
    end
    redis.call('HDEL', attempts, id)
    redis.call('HDEL', again, id)
    redis.call('HSET', pool, id, retime(record, due))
    schedule(KEYS[tonumber(ARGV[at + 1])], ARGV[at + 2], id, due, alarms)
    moved = moved + 1
    bytes = bytes + #record
  end
  at = at + 3
end
if moved > 0 then
  redis.call('HINCRBY', stats, 'rescheduled', moved)
end
local _, now_us = clock()
alarm(channel, now_us, alarms)
return { 'ok', (at - 6) / 3, moved }
