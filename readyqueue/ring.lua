-- ring: wakes a process if ids wait in ready.
-- KEYS 1 ready  2 bell
-- returns {}
ring(KEYS[1], KEYS[2])
return {}
