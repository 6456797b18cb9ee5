-- count: counts the request of one line of the log, unless it is counted already.
-- KEYS 1 counts (hash: path to requests so far)  2 counted (bitmap: 1 at the number of each counted line)
-- ARGV 1 line number from 0  2 path
-- returns 1 if it was counted now, else 0
local counts, counted = KEYS[1], KEYS[2]
local line, path = ARGV[1], ARGV[2]

if redis.call('SETBIT', counted, line, 1) == 1 then
  return 0
end
redis.call('HINCRBY', counts, path, 1)
return 1
