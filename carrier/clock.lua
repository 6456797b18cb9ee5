-- clock: tells the time. Changes nothing.
-- KEYS 1 any key of the server asked
-- returns {now (us)}
local _, now_us = clock()
return { now_us }
