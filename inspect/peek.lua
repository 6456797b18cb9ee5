-- peek: tells what events are, without the whole of large bodies. Changes nothing.
-- KEYS 1 pool  2 attempts
-- ARGV 1 most bytes of each body  2 what the last error must contain, or ''  3 bytes of records after which to stop  4.. ids
-- returns {number of ids looked at, then for each of these that has a record and such an error: its number from 1,
--      record with the beginning of its body, bytes of the whole record, attempts entry or ''}
local pool, attempts = KEYS[1], KEYS[2]
local preview, needle, most_bytes = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])

local states = redis.call('HMGET', attempts, unpack(ARGV, 4))
local found, bytes, looked = { 0 }, 0, 0
while looked < #ARGV - 3 and bytes < most_bytes do
  looked = looked + 1
  local state = states[looked] or ''
  local cause = string.match(state, '^[^|]*|[^|]*|(.*)$') or ''
  local record = string.find(cause, needle, 1, true) and redis.call('HGET', pool, ARGV[3 + looked])
  if record then
    bytes = bytes + #record
    local header = string.find(record, '\n', 1, true) or 0
    found[#found + 1] = looked
    found[#found + 1] = string.sub(record, 1, header + preview)
    found[#found + 1] = #record
    found[#found + 1] = state
  end
end
found[1] = looked
return found
