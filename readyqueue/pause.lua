-- pause: pauses a lane, or resumes it and wakes everybody.
-- KEYS 1 meta  2 ready  3 bell
-- ARGV 1 '1' to pause, '' to resume  2 alarm channel
-- returns {}
local meta, ready, bell = KEYS[1], KEYS[2], KEYS[3]
local pauses, channel = ARGV[1] == '1', ARGV[2]

local was_paused = redis.call('HDEL', meta, 'paused') == 1 -- a script that has written may go on writing in a full Redis
if pauses then
  redis.call('HSET', meta, 'paused', '1')
elseif was_paused then
  local _, now_us = clock()
  ring(ready, bell)
  alarm(channel, now_us, { 'resumed' })
end
return {}
