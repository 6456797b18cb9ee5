-- extend: pushes a session's deadline on.
-- KEYS 1 sessions  2 held
-- ARGV 1 session  2 lease (ms)  3 alarm channel
-- returns the number of ids the session holds, or -1 if its leases were taken away
local sessions, held = KEYS[1], KEYS[2]
local session, lease, channel = ARGV[1], tonumber(ARGV[2]), ARGV[3]

local now, now_us = clock()
if redis.call('ZREM', sessions, session) == 0 then -- a script that has written may go on writing in a full Redis
  abandon(held, sessions, session, channel, now_us)
  return { -1 }
end
redis.call('ZADD', sessions, text(now + lease), session)
return { redis.call('SCARD', held) }
