-- expire: takes the events of a session past its deadline away from it and gives them back to ready, a batch a call.
-- In the first call the held set is renamed and the session leaves sessions, so that it cannot come back to them; what
-- is left then belongs to the session '!name', whose deadline is long past, until later calls have emptied it.
-- KEYS 1 sessions  2 held set of the session  3 held set of '!session' (the same key if the session is one of these)
--      4 ready  5 bell  6 attempts  7 again  8 stats  9 meta  10.. all buckets in order
-- ARGV 1 session  2 its name once taken ('!session'; the same if it is one of these)  3 most ids to move  4 alarm channel
--      5 cause to note with the attempt  6 bucket counts as the caller knows them
-- returns {deadline (ms)} of a session that lives or 0, or {0, ids moved, ids left}
--      or {'counts', the bucket counts in Redis}: nothing was done, learn them and call again
local sessions, held, taken, ready, bell, attempts, again, stats, meta =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local session, taken_name, limit, channel, cause, known = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5], ARGV[6]

local stored = redis.call('HGET', meta, 'buckets') or ''
if stored ~= known then
  return { 'counts', stored }
end
local now, now_us = clock()
local deadline = tonumber(redis.call('ZSCORE', sessions, session) or 0)
if deadline > now then
  return { deadline }
end
if session ~= taken_name then
  redis.call('ZREM', sessions, session)
  if redis.call('EXISTS', held) == 1 then
    if redis.call('EXISTS', taken) == 1 then
      redis.call('SUNIONSTORE', taken, taken, held)
      redis.call('DEL', held)
    else
      redis.call('RENAME', held, taken)
    end
    redis.call('ZADD', sessions, 0, taken_name)
  end
end

local alarms = {}
local ids = redis.call('SPOP', taken, limit)
for _, id in ipairs(ids) do
  local mark = redis.call('HGET', again, id)
  local kind, due, index
  if mark then
    kind, due, index = parse_mark(mark)
    redis.call('HDEL', again, id)
  end
  if kind == 'replace' then -- a new event under the same id: its own time, its own attempts
    redis.call('HDEL', attempts, id)
    schedule(KEYS[10 + tonumber(index)], index, id, due, alarms)
  else
    local state = redis.call('HGET', attempts, id)
    local done = state and string.match(state, '^%d+|(%x*)|') or ''
    redis.call('HSET', attempts, id, (attempts_of(state) + 1) .. '|' .. done .. '|' .. cause)
    redis.call('LPUSH', ready, id)
  end
end

local left = redis.call('SCARD', taken)
if left == 0 then
  redis.call('ZREM', sessions, taken_name)
end
if #ids > 0 then
  redis.call('HINCRBY', stats, 'expired', #ids)
  ring(ready, bell)
end
alarm(channel, now_us, alarms)
return { 0, #ids, left }
