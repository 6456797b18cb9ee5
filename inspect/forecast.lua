-- forecast: counts what is scheduled by when it is due. Changes nothing.
-- KEYS buckets
-- ARGV pauses from now on (ms), in order
-- returns for each of them how many are due within it and not within the one before
local now = clock()
local counts = {}
local after = '-inf'
for i, ahead in ipairs(ARGV) do
  local upto = text(now + tonumber(ahead))
  counts[i] = 0
  for _, bucket in ipairs(KEYS) do
    counts[i] = counts[i] + redis.call('ZCOUNT', bucket, after, upto)
  end
  after = '(' .. upto
end
return counts
