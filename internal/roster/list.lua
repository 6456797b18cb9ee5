-- list: reads which sessions are there, those first that are kept longest. Changes nothing.
-- KEYS 1 sessions of a namespace (zset: description by when to drop it, ms)
-- ARGV 1 most sessions
-- returns {description, when to drop it (ms as text), …}
return redis.call('ZREVRANGEBYSCORE', KEYS[1], '+inf', '(' .. text(clock()), 'WITHSCORES', 'LIMIT', 0, ARGV[1])
