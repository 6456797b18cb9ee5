-- breaches: looks for breaches of conservation: every id in a pool must be in exactly one of a bucket, ready, a held set
-- and dead; what is held must belong to a known session; nothing may be kept of ids that are gone. It reads all keys at
-- once, which only the server of a test can bear.
-- ARGV patterns of the keys
-- returns {events that are not dead, breaches (text) ...}
local bad, pool, places, extra, sessions, held = {}, {}, {}, {}, {}, {}
local live = 0

local function put(lane, ids, where)
  for _, id in ipairs(ids) do
    places[lane .. id] = (places[lane .. id] or '') .. ' ' .. where
    if where ~= 'dead' then
      live = live + 1
    end
  end
end

local keys = {}
for _, pattern in ipairs(ARGV) do
  for _, key in ipairs(redis.call('KEYS', pattern)) do
    keys[#keys + 1] = key
  end
end
table.sort(keys)
for _, key in ipairs(keys) do
  local lane, what = string.match(key, '^(.-}):(.*)$')
  if what == 'pool' then
    for _, id in ipairs(redis.call('HKEYS', key)) do
      pool[lane .. id] = true
    end
  elseif what == 'ready' then
    put(lane, redis.call('LRANGE', key, 0, -1), what)
  elseif what == 'dead' or string.sub(what, 1, 7) == 'bucket:' then
    put(lane, redis.call('ZRANGE', key, 0, -1), what)
  elseif string.sub(what, 1, 5) == 'held:' then
    put(lane, redis.call('SMEMBERS', key), what)
    held[lane .. string.sub(what, 6)] = true
  elseif what == 'attempts' or what == 'again' then
    for _, id in ipairs(redis.call('HKEYS', key)) do
      extra[what .. ' of ' .. lane .. id] = lane .. id
    end
  elseif what == 'sessions' then
    for _, s in ipairs(redis.call('ZRANGE', key, 0, -1)) do
      sessions[lane .. s] = true
    end
  end
end

for id in pairs(pool) do
  local where = places[id] or ' nowhere'
  if string.find(where, ' .* ') or not places[id] then
    bad[#bad + 1] = id .. ' lies' .. where
  end
end
for id, where in pairs(places) do
  if not pool[id] then
    bad[#bad + 1] = id .. ' without a record lies' .. where
  end
end
for what, id in pairs(extra) do
  if not pool[id] then
    bad[#bad + 1] = what .. ' is left over'
  end
end
for session in pairs(held) do
  if not sessions[session] then
    bad[#bad + 1] = session .. ' holds events and is no session'
  end
end
return { live, unpack(bad, 1, math.min(#bad, 100)) }
