-- slice: reads a part of a sorted set in its order, or backwards, from behind a place in it. Changes nothing.
-- KEYS 1 sorted set
-- ARGV 1 '1' backwards  2 score of the place  3 which members of that score lie before it: 'none', 'all', or those 'upto'
--      an id  4 that id, which may be gone  5 most members
-- returns {member, score as text, …}, in the set's order even if backwards
local set = KEYS[1]
local backwards, score, seen, id, most = ARGV[1] == '1', ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])

-- whether a stands before b in Redis's order, which is that of bytes
local function precedes(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then
      return x < y
    end
  end
  return #a < #b
end

-- ranks: members below low are of a lower score, from high on of a higher one
local low = redis.call('ZCOUNT', set, '-inf', '(' .. score)
local high = redis.call('ZCOUNT', set, '-inf', score)
local first, last -- ranks of the nearest members before and behind the place
if seen == 'upto' then
  local at = redis.call('ZSCORE', set, id)
  if at and tonumber(at) == tonumber(score) then
    local rank = redis.call('ZRANK', set, id)
    first, last = rank - 1, rank + 1
  else
    while low < high do
      local middle = math.floor((low + high) / 2)
      if precedes(redis.call('ZRANGE', set, middle, middle)[1], id) then
        low = middle + 1
      else
        high = middle
      end
    end
    first, last = low - 1, low
  end
elseif (seen == 'all') == backwards then
  first, last = low - 1, low
else
  first, last = high - 1, high
end

if not backwards then
  return redis.call('ZRANGE', set, last, last + most - 1, 'WITHSCORES')
end
if first < 0 then
  return {}
end
return redis.call('ZRANGE', set, math.max(0, first - most + 1), first, 'WITHSCORES')
