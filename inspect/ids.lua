-- ids: a step of a walk over the fields of a hash, whose values stay in Redis. Changes nothing.
-- KEYS 1 hash
-- ARGV 1 cursor  2 about how many fields
-- returns {next cursor ('0': the walk is over), fields, bytes of their values}
local step = redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', ARGV[2])
local pairs_found = step[2]
local ids, bytes = {}, 0
for i = 1, #pairs_found, 2 do
  ids[#ids + 1] = pairs_found[i]
  bytes = bytes + #pairs_found[i + 1]
end
return { step[1], ids, bytes }
