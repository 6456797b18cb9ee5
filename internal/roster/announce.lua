-- announce: notes that a session is there, and drops those that were not seen for long.
-- KEYS 1 sessions of a namespace (zset: description by when to drop it, ms)
-- ARGV 1 description, or '' if the session ends  2 its description until now, or ''  3 how long to keep it (ms)
--      4 most others to drop
-- returns {}
local sessions = KEYS[1]
local description, before, keep, most = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]

local now = clock()
redis.call('ZREM', sessions, before) -- a script that has written may go on writing in a full Redis
for _, other in ipairs(redis.call('ZRANGEBYSCORE', sessions, '-inf', now, 'LIMIT', 0, most)) do
  redis.call('ZREM', sessions, other)
end
if description ~= '' then
  redis.call('ZADD', sessions, text(now + keep), description)
end
return {}
