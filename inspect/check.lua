-- check: judges ids by all the places in which they lie at this moment and, if asked to, mends what is wrong with them,
-- but for held sets of no session: adopt does that. Nothing that has a body is forgotten.
-- KEYS 1 pool  2 ready  3 dead  4 sessions  5 attempts  6 again  7 meta  8 stats  9.. buckets, then held sets
-- ARGV 1 bucket counts as the caller knows them  2 bucket counts to register before an id may go to where it belongs
--      3 '1' to mend  4 alarm channel  5 cause to note with a body that lies nowhere
--      6 number of buckets in KEYS  7 number of registered bucket counts  8.. the sessions of the held sets,
--      then for each id: id, KEYS index and index of the bucket in which it belongs, KEYS index of its home for each count
-- returns {'ok', {{kind, id, keys in which it lies …}, …}}
--      or {'counts', the bucket counts in Redis}, or {'sessions', sessions that are not among those given …}: nothing was
--      done, learn them and call again
local pool, ready, dead, sessions, attempts, again, meta, stats =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local known, wanted, mend, channel, cause = ARGV[1], ARGV[2], ARGV[3] == '1', ARGV[4], ARGV[5]
local buckets, counts = tonumber(ARGV[6]), tonumber(ARGV[7])
local holders = #KEYS - 8 - buckets

local stored = redis.call('HGET', meta, 'buckets') or ''
if stored ~= known then
  return { 'counts', stored }
end
local given, deadlines, others = {}, {}, { 'sessions' }
for h = 1, holders do
  given[ARGV[7 + h]] = true
end
local all = redis.call('ZRANGE', sessions, 0, -1, 'WITHSCORES')
for i = 1, #all, 2 do
  deadlines[all[i]] = tonumber(all[i + 1])
  if not given[all[i]] then
    others[#others + 1] = all[i]
  end
end
if #others > 1 then
  return others
end
local now, now_us = clock()
local alarms, findings = {}, {}
if mend then
  redis.call('HDEL', again, '') -- no id: a script that has written may go on writing in a full Redis
end

local before, width = 7 + holders, 3 + counts
local ids, places = {}, {}
for i = before + 1, #ARGV, width do
  ids[#ids + 1] = ARGV[i]
  places[#ids] = {}
end

-- notes a place in which the i-th id lies. Of several the one of the lowest rank is right: where a live session holds
-- it, else ready, a bucket, dead. Of equals that with the greatest at is: an event may be late, never early.
local function put(i, rank, key, at, place)
  place.rank, place.key, place.at = rank, key, tonumber(at)
  place.times = place.times or 1
  places[i][#places[i] + 1] = place
end

local function is_home(i, b)
  local from = before + (i - 1) * width + 3
  for j = from + 1, from + counts do
    if tonumber(ARGV[j]) == b then
      return true
    end
  end
  return false
end

for b = 9, 8 + buckets do
  local dues = redis.call('ZMSCORE', KEYS[b], unpack(ids))
  for i = 1, #ids do
    if dues[i] then
      local home = is_home(i, b)
      put(i, home and 3 or 4, KEYS[b], dues[i], { due = dues[i], astray = not home })
    end
  end
end
for h = 1, holders do
  local held, session = KEYS[8 + buckets + h], ARGV[7 + h]
  local deadline = deadlines[session]
  local holds = redis.call('SMISMEMBER', held, unpack(ids))
  for i = 1, #ids do
    if holds[i] == 1 then
      local lives = deadline and deadline > now
      put(i, lives and 1 or 6, held, deadline or 0, { held = true, alone = not deadline })
    end
  end
end
local deaths = redis.call('ZMSCORE', dead, unpack(ids))
for i, id in ipairs(ids) do
  if deaths[i] then
    put(i, 5, dead, deaths[i], {})
  end
  local times = #redis.call('LPOS', ready, id, 'COUNT', 0)
  if times > 0 then
    put(i, 2, ready, 0, { times = times })
  end
end

-- the keys of those places that have the flag, or of all
local function keys_of(list, flag)
  local keys = {}
  for _, place in ipairs(list) do
    for _ = 1, (not flag or place[flag]) and math.min(place.times, 2) or 0 do
      keys[#keys + 1] = place.key
    end
  end
  return keys
end

local function report(kind, id, keys)
  if #keys > 0 then
    findings[#findings + 1] = { kind, id, unpack(keys) }
  end
end

local function take(id, place)
  if place.held then
    redis.call('SREM', place.key, id)
  elseif place.key == ready then
    redis.call('LREM', ready, 0, id)
  else
    redis.call('ZREM', place.key, id)
  end
end

-- an id without a body is forgotten
local function judge_bodiless(id, list)
  local entries = {}
  for _, hash in ipairs({ attempts, again }) do
    if redis.call('HEXISTS', hash, id) == 1 then
      entries[#entries + 1] = hash
    end
  end
  report('no_body', id, keys_of(list))
  report('leftover', id, entries)
  if mend then
    for _, place in ipairs(list) do
      take(id, place)
    end
    redis.call('HDEL', attempts, id)
    redis.call('HDEL', again, id)
  end
end

-- a body that lies nowhere goes to dead: where it came from nobody knows
local function judge_placeless(id)
  report('no_place', id, { pool })
  if mend then
    local state = redis.call('HGET', attempts, id)
    local done = state and string.match(state, '^%d+|(%x*)|') or ''
    redis.call('HSET', attempts, id, attempts_of(state) .. '|' .. done .. '|' .. cause)
    redis.call('HDEL', again, id)
    redis.call('ZADD', dead, text(now), id)
    redis.call('HINCRBY', stats, 'buried', 1)
  end
end

-- leaves an id in one place, and that a right one
local function settle_down(i, id, list)
  table.sort(list, function(a, b) return a.rank < b.rank or a.rank == b.rank and a.at > b.at end)
  for j = 2, #list do
    take(id, list[j])
  end
  local kept = list[1]
  if kept.times > 1 then
    redis.call('LREM', ready, 1 - kept.times, id) -- all but the first
  elseif kept.astray then
    local belongs = before + (i - 1) * width + 2
    take(id, kept)
    if known ~= wanted then
      redis.call('HSET', meta, 'buckets', wanted)
    end
    schedule(KEYS[tonumber(ARGV[belongs])], ARGV[belongs + 1], id, kept.due, alarms)
  end
end

for i, id in ipairs(ids) do
  local list = places[i]
  if redis.call('HEXISTS', pool, id) == 0 then
    judge_bodiless(id, list)
  elseif #list == 0 then
    judge_placeless(id)
  else
    if #list > 1 or list[1].times > 1 then
      report('two_places', id, keys_of(list))
    end
    report('wrong_bucket', id, keys_of(list, 'astray'))
    report('no_session', id, keys_of(list, 'alone'))
    if mend then
      settle_down(i, id, list)
    end
  end
end
alarm(channel, now_us, alarms)
return { 'ok', findings }
