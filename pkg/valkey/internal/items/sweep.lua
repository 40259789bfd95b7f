-- Deletes items that have expired, with the entries that lead to them. KEYS: the set of the items that
-- expire. ARGV: the prefix of the table; the time, Unix s; how many items at most are looked at.
-- Returns how many were looked at. An item that has moved to another server of a cluster is left for later. It runs without memory too, by its flag, since it makes room. What is no item is
-- left as it is.
local T, now = ARGV[1], tonumber(ARGV[2])
local keys = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, tonumber(ARGV[3]))
local looked = 0
for _, key in ipairs(keys) do
  local flat, it = redis.pcall('HGETALL', key), {}
  local moved = flat.err and not flat.err:find('WRONGTYPE', 1, true)
  looked = looked + (moved and 0 or 1)
  for i = 1, #flat, 2 do it[flat[i]] = flat[i + 1] end
  local ttl = it.PK and it.SK and it.ttl and tonumber(it.ttl)
  if moved then -- by a slot that moves
  elseif ttl and ttl > now then
    redis.call('ZADD', KEYS[1], it.ttl, key)
  else
    if ttl then
      redis.call('DEL', key)
      for z, m in pairs(places(T, it)) do redis.call('ZREM', z, m) end
    end
    redis.call('ZREM', KEYS[1], key)
  end
end
return looked
