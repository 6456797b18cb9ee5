-- alarm: tells the carriers of heads that moved earlier.
-- KEYS 1 a key of the lane, which nothing is done to
-- ARGV 1 alarm channel  2.. bucket index '=' due (ms)
-- returns {}
local _, now_us = clock()
alarm(ARGV[1], now_us, { unpack(ARGV, 2) })
return {}
