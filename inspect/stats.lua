-- stats: counts what lies where. Changes nothing.
-- KEYS 1 pool  2 ready  3 dead  4 stats  5 sessions  6 meta  7.. buckets, then the held sets of sessions
-- ARGV 1 number of buckets  2 bucket counts as the caller knows them  3.. these sessions
-- returns {now (ms), scheduled, ready (with what sessions past their deadline hold), leased, dead, earliest due time in the buckets (ms as text, or ''),
--      record at the head of ready or '', counters as name, value, …; number of records in the pool,
--      1 if the lane is paused, else 0}
--      or {'again'}: there are other sessions or bucket counts than these; call again
local pool, ready, dead, stats, sessions, meta = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local buckets, known = tonumber(ARGV[1]), ARGV[2]

local facts = redis.call('HMGET', meta, 'buckets', 'paused')
if (facts[1] or '') ~= known then
  return { 'again' }
end
local now = clock()
local scheduled, waiting, leased = 0, redis.call('LLEN', ready), 0
local earliest = ''
for i = 7, 6 + buckets do
  scheduled = scheduled + redis.call('ZCARD', KEYS[i])
  local due = redis.call('ZRANGE', KEYS[i], 0, 0, 'WITHSCORES')[2]
  if due and (earliest == '' or tonumber(due) < tonumber(earliest)) then
    earliest = due
  end
end
if redis.call('ZCARD', sessions) ~= #ARGV - 2 then
  return { 'again' }
end
for i = 3, #ARGV do
  local deadline = redis.call('ZSCORE', sessions, ARGV[i])
  if not deadline then
    return { 'again' }
  end
  local held = redis.call('SCARD', KEYS[4 + buckets + i])
  if tonumber(deadline) > now then
    leased = leased + held
  else -- about to be given back
    waiting = waiting + held
  end
end
local first = redis.call('LINDEX', ready, 0)
local record = first and redis.call('HGET', pool, first) or ''
return {
  now, scheduled, waiting, leased, redis.call('ZCARD', dead),
  earliest, record, redis.call('HGETALL', stats), redis.call('HLEN', pool),
  facts[2] and 1 or 0,
}
