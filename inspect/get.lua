-- get: where an event lies and what it is. Changes nothing.
-- KEYS 1 pool  2 ready  3 meta  4 attempts  5 dead  6.. buckets in which the id may lie
-- ARGV 1 bucket counts as the caller knows them  2 id
-- returns {state (scheduled, ready, leased, dead), due or time of death (ms as text, '' if neither), record, attempts entry or ''}
--      or {'missing'}, or {'counts', the bucket counts in Redis}: learn them and call again
local pool, ready, meta, attempts, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local known, id = ARGV[1], ARGV[2]

local stored = redis.call('HGET', meta, 'buckets') or ''
if stored ~= known then
  return { 'counts', stored }
end
local record = redis.call('HGET', pool, id)
if not record then
  return { 'missing' }
end
local state, at
for i = 6, #KEYS do
  local due = redis.call('ZSCORE', KEYS[i], id)
  if due then
    state, at = 'scheduled', due
  end
end
if not state then
  at = redis.call('ZSCORE', dead, id)
  if at then
    state = 'dead'
  elseif redis.call('LPOS', ready, id) then
    state = 'ready'
  else
    state = 'leased'
  end
end
return { state, at or '', record, redis.call('HGET', attempts, id) or '' }
