-- publish: stores events and schedules them; those already due go straight to ready while it has room.
-- KEYS 1 pool  2 ready  3 bell  4 meta  5 stats  6 attempts  7 again  8 dead  9.. buckets
-- ARGV 1 bucket counts as the caller knows them  2 bucket counts to register: not looked at if both are the same and no
--      event is keyed  3 most ids in ready  4 alarm channel  5 '1' if events are keyed  6 buckets of other counts in
--      which a keyed event may lie  7 number of events for which one of the keyed events stands, too: they are kept
--      then groups: KEYS index and index of a bucket, number of new events, number of keyed events, and for each: id,
--      record, due (ms); if keyed, also policy (reject, keep, replace) and the KEYS index of each bucket of another count
-- returns {'ok', the outcomes of the keyed events, a letter each: (s)tored, (k)ept, (r)eplaced, (d)uplicate}
--      or {'counts', the bucket counts in Redis}: nothing was done, learn them and call again
local pool, ready, bell, meta, stats, attempts, again, dead =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local known, wanted, high_water, channel = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local any_keyed, others, folded = ARGV[5] == '1', tonumber(ARGV[6]), tonumber(ARGV[7])

if known ~= wanted or any_keyed then
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
local failures = any_keyed and redis.call('EXISTS', attempts) == 1
local outcomes = {}
local count = { s = 0, r = 0, k = folded, d = 0 } -- by outcome

-- whether something that is due may go to ready: else it waits in its bucket
local function admit(due)
  if tonumber(due) > now then
    return false
  end
  room = (room or high_water - redis.call('LLEN', ready)) - 1
  rang = rang or room >= 0
  return room >= 0
end

-- stores new events, from ARGV[at + 1] on
local function insert(bucket, index, at, n)
  local records, ids_due, ids_ahead = {}, {}, {}
  for i = at + 1, at + 3 * n, 3 do
    local id, due = ARGV[i], ARGV[i + 2]
    records[#records + 1] = id
    records[#records + 1] = ARGV[i + 1]
    if admit(due) then
      ids_due[#ids_due + 1] = id
    else
      ids_ahead[#ids_ahead + 1] = due
      ids_ahead[#ids_ahead + 1] = id
    end
  end
  redis.call('HSET', pool, unpack(records))
  if #ids_due > 0 then
    redis.call('RPUSH', ready, unpack(ids_due))
  end
  if #ids_ahead > 0 then
    redis.call('ZADD', bucket, unpack(ids_ahead))
    local head = redis.call('ZRANGE', bucket, 0, 0)
    for i = 2, #ids_ahead, 2 do
      if ids_ahead[i] == head[1] then
        alarms[#alarms + 1] = index .. '=' .. ids_ahead[i - 1]
      end
    end
  end
  count.s = count.s + n
end

-- what is kept has not seen this publish: handlers that have succeeded run again, too
local function keep(id)
  local state = failures and redis.call('HGET', attempts, id)
  if state then
    redis.call('HSET', attempts, id, undone(state))
  end
  return 'k'
end

-- the bucket in which the keyed event at ARGV[at] lies
local function find(at, home)
  if redis.call('ZSCORE', home, ARGV[at]) then
    return home
  end
  for i = at + 4, at + 3 + others do
    local bucket = KEYS[tonumber(ARGV[i])]
    if redis.call('ZSCORE', bucket, ARGV[at]) then
      return bucket
    end
  end
end

-- publishes the keyed event at ARGV[at]
local function publish(at, home, index)
  local id, record, due, policy = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local probed = policy == 'keep' and others == 0 and tonumber(due) > now -- it mostly lies in its bucket: one call says so
  if probed and redis.call('ZADD', home, 'NX', due, id) == 0 then
    return keep(id)
  end
  local outcome = 's'
  if redis.call('HSETNX', pool, id, record) == 1 then
    if probed then
      note_head(home, index, id, due, alarms)
      return 's'
    end
  else
    if policy == 'reject' then
      return 'd'
    end
    if probed then
      redis.call('ZREM', home, id)
    end
    local found = not probed and find(at, home)
    if found and policy == 'keep' then
      return keep(id)
    end
    local free
    if found then
      free = redis.call('ZREM', found, id)
      outcome = 'r'
    else
      free = redis.call('ZREM', dead, id)
      if free == 0 and policy == 'replace' then
        free = redis.call('LREM', ready, 1, id)
        outcome = 'r'
      end
    end
    if free == 0 then -- somebody holds it, or (keep) is about to: it runs again afterwards
      if policy == 'keep' then
        redis.call('HSETNX', again, id, 'keep:' .. due .. ':' .. index)
        return keep(id)
      end
      redis.call('HSET', pool, id, record)
      redis.call('HSET', again, id, 'replace:' .. due .. ':' .. index)
      return 'r'
    end
    redis.call('HDEL', attempts, id)
    redis.call('HDEL', again, id)
    redis.call('HSET', pool, id, record)
  end
  if admit(due) then
    redis.call('RPUSH', ready, id)
  else
    schedule(home, index, id, due, alarms)
  end
  return outcome
end

local at = 7
while at < #ARGV do
  local bucket, index, fresh, keyed = KEYS[tonumber(ARGV[at + 1])], ARGV[at + 2], tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  at = at + 4
  if fresh > 0 then
    insert(bucket, index, at, fresh)
    at = at + 3 * fresh
  end
  for _ = 1, keyed do
    local outcome = publish(at + 1, bucket, index)
    count[outcome] = count[outcome] + 1
    outcomes[#outcomes + 1] = outcome
    at = at + 4 + others
  end
end

for field, n in pairs({ published = count.s + count.r, kept = count.k, duplicates = count.d }) do
  if n > 0 then
    redis.call('HINCRBY', stats, field, n)
  end
end
if rang then
  ring(ready, bell)
end
alarm(channel, now_us, alarms)
return { 'ok', table.concat(outcomes) }
