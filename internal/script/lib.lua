-- Functions that the moves share; this text stands before each of them.

-- now in whole milliseconds and in microseconds, by the server's clock
local function clock()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000), t[1] * 1000000 + t[2]
end

-- a whole number as text: tostring() would give 1.7e+15
local function text(n)
  return string.format('%.0f', n)
end

-- wakes one process if ids wait in ready; the bell holds one token at most
local function ring(ready, bell)
  if redis.call('EXISTS', ready) == 1 and redis.call('EXISTS', bell) == 0 then
    redis.call('RPUSH', bell, '1')
  end
end

-- the same record with another effect time in its header
local function retime(record, due)
  return (string.gsub(record, '^({"v":%d+,"at":)%-?%d+', '%1' .. due, 1))
end

-- the number of attempts in an entry of the attempts hash
local function attempts_of(state)
  return state and tonumber(string.match(state, '^%d+')) or 0
end

-- an entry of the attempts hash without the handlers that have succeeded
local function undone(state)
  return (string.gsub(state, '^(%d+|)%x*', '%1', 1))
end

-- kind ('keep' or 'replace'), due (ms) and bucket index of an entry of the again hash
local function parse_mark(mark)
  return string.match(mark, '^(%a+):(%-?%d+):(%d+)$')
end

-- notes in alarms that id, just put into a bucket, is its head
local function note_head(bucket, index, id, due, alarms)
  if redis.call('ZRANGE', bucket, 0, 0)[1] == id then
    alarms[#alarms + 1] = index .. '=' .. due
  end
end

-- puts an id into a bucket
local function schedule(bucket, index, id, due, alarms)
  redis.call('ZADD', bucket, due, id)
  note_head(bucket, index, id, due, alarms)
end

-- tells the carriers, with the time (us), which heads moved earlier and which session is new:
-- "1732184350000000 3=1732184357123 session=1732184365000"
local function alarm(channel, now_us, alarms)
  if #alarms > 0 then
    redis.call('PUBLISH', channel, text(now_us) .. ' ' .. table.concat(alarms, ' '))
  end
end

-- gives up what a session holds although it is not among the sessions, which only another hand can bring about:
-- with a deadline long past, its events go the way of a dead session's
local function abandon(held, sessions, session, channel, now_us)
  if redis.call('EXISTS', held) == 1 then
    redis.pcall('ZADD', sessions, 1, session) -- a full Redis refuses: the caller comes again
    alarm(channel, now_us, { 'session=1' })
  end
end
