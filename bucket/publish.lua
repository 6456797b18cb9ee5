-- publish: stores events and schedules them; those already due go straight to ready while it has room.
-- KEYS 1 pool  2 ready  3 bell  4 meta  5 stats  6 attempts  7 again  8 dead  9.. buckets
-- ARGV 1 bucket counts as the caller knows them  2 bucket counts to register: not looked at if both are the same and no
--      event is keyed  3 most ids in ready  4 alarm channel
--      5 number of new events  6 number of keyed events  7 homes per keyed event
--      8 number of events for which one of the keyed events stands, too: they are kept
--      then new events: id, record; then once more: due (ms), KEYS index and index of its bucket
--      then keyed events: id, record, due (ms), policy (reject, keep, replace), and for each home: KEYS index, bucket index
-- returns {'ok', outcome of each keyed event: 'stored', 'kept' or 'duplicate'}
--      or {'counts', the bucket counts in Redis}: nothing was done, learn them and call again
local pool, ready, bell, meta, stats, attempts, again, dead =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local known, wanted, high_water, channel = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local fresh, keyed, homes = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])

if known ~= wanted or keyed > 0 then
  local stored = redis.call('HGET', meta, 'buckets') or ''
  if stored ~= known then
    return { 'counts', stored }
  end
  if stored ~= wanted then
    redis.call('HSET', meta, 'buckets', wanted)
  end
end

local now, now_us = clock()
local alarms = {}
local room = nil
local rang = false

-- whether something that is due may go to ready: else it waits in its bucket
local function admit(due)
  if tonumber(due) > now then
    return false
  end
  room = (room or high_water - redis.call('LLEN', ready)) - 1
  rang = rang or room >= 0
  return room >= 0
end

local at = 8
if fresh > 0 then
  redis.call('HSET', pool, unpack(ARGV, at + 1, at + 2 * fresh))
  redis.call('HINCRBY', stats, 'published', fresh)
  local due_now = {}
  for i = 1, fresh do
    local id, from = ARGV[at + 2 * i - 1], at + 2 * fresh + 3 * i - 2
    if admit(ARGV[from]) then
      due_now[#due_now + 1] = id
    else
      schedule(KEYS[tonumber(ARGV[from + 1])], ARGV[from + 2], id, ARGV[from], alarms)
    end
  end
  if #due_now > 0 then
    redis.call('RPUSH', ready, unpack(due_now))
  end
  at = at + 5 * fresh
end

-- the bucket in which id lies
local function find(id, from)
  for i = from + 1, from + 2 * homes, 2 do
    local bucket = KEYS[tonumber(ARGV[i])]
    if redis.call('ZSCORE', bucket, id) then
      return bucket
    end
  end
end

local failures = keyed > 0 and redis.call('EXISTS', attempts) == 1

-- what is kept has not seen this publish: handlers that have succeeded run again, too
local function keep(id)
  local state = failures and redis.call('HGET', attempts, id)
  if state then
    redis.call('HSET', attempts, id, undone(state))
  end
  return 'kept'
end

local function publish(id, record, due, policy, from)
  local bucket = find(id, from)
  if bucket and policy == 'keep' then
    return keep(id)
  end
  local home, index = KEYS[tonumber(ARGV[from + 1])], ARGV[from + 2]
  if bucket or redis.call('HEXISTS', pool, id) == 1 then
    if policy == 'reject' then
      return 'duplicate'
    end
    local free
    if bucket then
      free = redis.call('ZREM', bucket, id)
    else
      free = redis.call('ZREM', dead, id)
      if free == 0 and policy == 'replace' then
        free = redis.call('LREM', ready, 1, id)
      end
    end
    if free == 0 then -- somebody holds it, or (keep) is about to: it runs again afterwards
      if policy == 'keep' then
        redis.call('HSETNX', again, id, 'keep:' .. due .. ':' .. index)
        return keep(id)
      end
      redis.call('HSET', pool, id, record)
      redis.call('HSET', again, id, 'replace:' .. due .. ':' .. index)
      return 'stored'
    end
    redis.call('HDEL', attempts, id)
    redis.call('HDEL', again, id)
  end
  redis.call('HSET', pool, id, record)
  if admit(due) then
    redis.call('RPUSH', ready, id)
  else
    schedule(home, index, id, due, alarms)
  end
  return 'stored'
end

local outcomes = {}
local count = { stored = 0, kept = tonumber(ARGV[8]), duplicate = 0 }
for i = 1, keyed do
  local outcome = publish(ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4], at + 4)
  at = at + 4 + 2 * homes
  outcomes[i] = outcome
  count[outcome] = count[outcome] + 1
end
for outcome, field in pairs({ stored = 'published', kept = 'kept', duplicate = 'duplicates' }) do
  if count[outcome] > 0 then
    redis.call('HINCRBY', stats, field, count[outcome])
  end
end

if rang then
  ring(ready, bell)
end
alarm(channel, now_us, alarms)
return { 'ok', outcomes }
