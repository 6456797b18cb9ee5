-- scan: a part of a walk over a large set, one chain of its hash table after the other. Changes nothing.
-- KEYS 1 set
-- ARGV 1 cursor  2 about how many members
-- returns for each chain, and for some that are empty, {cursor behind it ('0': the walk is over), its members …}
local set, cursor, left = KEYS[1], ARGV[1], tonumber(ARGV[2])
local chains = {}
repeat
  local step = redis.call('SSCAN', set, cursor, 'COUNT', 1)
  cursor = step[1]
  left = left - math.max(1, #step[2])
  table.insert(step[2], 1, cursor)
  chains[#chains + 1] = step[2]
until cursor == '0' or left <= 0
return chains
