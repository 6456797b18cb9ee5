-- extend: pushes a session's deadline on.
-- KEYS 1 sessions  2 held
-- ARGV 1 session  2 lease (ms)
-- returns the number of ids the session holds, or -1 if its leases were taken away
local sessions, held = KEYS[1], KEYS[2]
local session, lease = ARGV[1], tonumber(ARGV[2])

if not redis.call('ZSCORE', sessions, session) then
  return { -1 }
end
redis.call('ZADD', sessions, text(clock() + lease), session)
return { redis.call('SCARD', held) }
