-- settle: ends leases. Only ids in the caller's held set are touched.
-- KEYS 1 held  2 pool  3 attempts  4 again  5 ready  6 bell  7 dead  8 stats  9.. home buckets of the ids not acked
-- ARGV 1 alarm channel  2 number of acked ids, then these ids; then for each other one six values:
--      outcome (ack, retry, bury, release), id, delay (ms; retry), attempts entry to keep (retry, bury),
--      KEYS index of its home bucket, bucket index
--      'ack' among the others is for an id that was published again while it was held
-- returns {ids no longer held, acked ids that were published again while held (still held: settle them as 'ack' among the others)}
local held, pool, attempts, again, ready, bell, dead, stats =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local channel, acked = ARGV[1], tonumber(ARGV[2])

local lost, marked, alarms = {}, {}, {}
local count = { acked = 0, retried = 0, buried = 0, released = 0 }
local extras = redis.call('EXISTS', again, attempts) > 0 -- else no id has an entry there

if acked == 1 and not extras then
  if redis.call('SREM', held, ARGV[3]) == 1 then
    redis.call('HDEL', pool, ARGV[3])
    count.acked = 1
  else
    lost[1] = ARGV[3]
  end
elseif acked > 0 then
  local ids = { unpack(ARGV, 3, 2 + acked) }
  local holds = redis.call('SMISMEMBER', held, unpack(ids))
  local marks = extras and redis.call('HMGET', again, unpack(ids)) or {}
  local done = {}
  for i = 1, acked do
    if holds[i] == 0 then
      lost[#lost + 1] = ids[i]
    elseif marks[i] then
      marked[#marked + 1] = ids[i]
    else
      done[#done + 1] = ids[i]
    end
  end
  if #done > 0 then
    redis.call('SREM', held, unpack(done))
    redis.call('HDEL', pool, unpack(done))
    if extras then
      redis.call('HDEL', attempts, unpack(done))
    end
    count.acked = #done
  end
end

local now, now_us
if 2 + acked < #ARGV then
  now, now_us = clock()
end

-- runs an event again, as the publish that came while it was held asked for
local function run_again(id, mark, bucket, index)
  local kind, due = parse_mark(mark)
  if kind == 'keep' then
    local record = redis.call('HGET', pool, id)
    if record then
      redis.call('HSET', pool, id, retime(record, due))
    end
  end
  redis.call('HDEL', again, id)
  redis.call('HDEL', attempts, id)
  schedule(bucket, index, id, due, alarms)
end

local function settle(outcome, id, delay, state, bucket, index)
  if redis.call('SREM', held, id) == 0 then
    lost[#lost + 1] = id
    return
  end
  local mark = extras and redis.call('HGET', again, id)
  local replaced = mark and string.sub(mark, 1, 7) == 'replace'
  if outcome == 'ack' then
    count.acked = count.acked + 1
    if mark then
      run_again(id, mark, bucket, index)
    else
      redis.call('HDEL', pool, id)
      redis.call('HDEL', attempts, id)
    end
  elseif replaced or mark and outcome == 'bury' then
    local field = outcome == 'release' and 'released' or 'retried'
    count[field] = count[field] + 1
    run_again(id, mark, bucket, index)
  else
    if mark then -- the run to come is the one the mark asks for: all handlers' run
      redis.call('HDEL', again, id)
      state = undone(state)
    end
    if outcome == 'release' then
      count.released = count.released + 1
      redis.call('LPUSH', ready, id)
    elseif outcome == 'retry' then
      count.retried = count.retried + 1
      redis.call('HSET', attempts, id, state)
      schedule(bucket, index, id, text(now + tonumber(delay)), alarms)
    else
      count.buried = count.buried + 1
      redis.call('HSET', attempts, id, state)
      redis.call('ZADD', dead, text(now), id)
    end
  end
end

for i = 3 + acked, #ARGV, 6 do
  settle(ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], KEYS[tonumber(ARGV[i + 4])], ARGV[i + 5])
end
for field, n in pairs(count) do
  if n > 0 then
    redis.call('HINCRBY', stats, field, n)
  end
end
if count.released > 0 then
  ring(ready, bell)
end
alarm(channel, now_us, alarms)
return { lost, marked }
