-- behind: reads a part of a list, from behind a member on. Changes nothing.
-- KEYS 1 list
-- ARGV 1 the member: if it is gone, so are those before it, and the list's beginning is read; '' reads that, too
--      2 most members
-- returns the members
local rank = redis.call('LPOS', KEYS[1], ARGV[1]) or -1
return redis.call('LRANGE', KEYS[1], rank + 1, rank + ARGV[2])
