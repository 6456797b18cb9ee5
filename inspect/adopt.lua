-- adopt: gives a held set of no session one that is past its deadline, so that carriers give back what it holds.
-- KEYS 1 sessions  2 held
-- ARGV 1 session  2 alarm channel
-- returns {}
local sessions, held = KEYS[1], KEYS[2]
local session, channel = ARGV[1], ARGV[2]

local _, now_us = clock()
if not redis.call('ZSCORE', sessions, session) then
  redis.call('ZREM', sessions, session) -- in vain: a script that has written may go on writing in a full Redis
  abandon(held, sessions, session, channel, now_us)
end
return {}
