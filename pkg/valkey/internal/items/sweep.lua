-- Looks at the items whose time has come. It deletes those that have expired, with the entries that lead to them, and adds
-- hours of usage that are over to their days and months. KEYS: the set of the items to look at. ARGV: the prefix of the
-- table; the time, Unix s; how many items at most are looked at. Returns how many were. An item that has moved to
-- another server of a cluster is left for later. It runs without memory too, by its flag, since it makes room. What is no
-- item is left as it is.
local T, now = ARGV[1], tonumber(ARGV[2])

-- Adds an hour to its day and its month, which name it until then. It reports false where one of them has moved.
local function close(key, hour)
  local names, all = {}, {}
  local start, window = key:match('^(.*#)([^#]+#[^#]+)$') -- the keys of the three begin alike
  for name, v in pairs(hour) do
    if name ~= 'ttl' and v:find('^%-?%d+$') then names[#names + 1] = name end
  end
  for _, mark in ipairs({ '>day', '>month' }) do
    local to, sums = start .. (hour[mark] or ''):sub(2), {}
    local had = redis.pcall('HMGET', to, 'PK', unpack(names))
    if had.err and not had.err:find('WRONGTYPE', 1, true) then return false end
    for i, name in ipairs(names) do
      local v = had[i + 1]
      local whole, sum = pcall(add, v or '0', hour[name], name)
      if whole then sums[#sums + 1], sums[#sums + 2] = name, sum end
    end
    if had[1] and #sums > 0 then all[to] = sums end -- else it is no longer there
  end
  redis.call('HDEL', key, '>day', '>month') -- first: where another write fails, nothing is added twice
  for to, sums in pairs(all) do
    redis.call('HSET', to, unpack(sums))
    redis.call('HDEL', to, '<' .. window)
  end
  return true
end

local keys = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, tonumber(ARGV[3]))
local looked = 0
for _, name in ipairs(keys) do
  local key = T .. 'i:' .. name
  local flat, it = redis.pcall('HGETALL', key), {}
  local moved = flat.err and not flat.err:find('WRONGTYPE', 1, true)
  for i = 1, #flat, 2 do it[flat[i]] = flat[i + 1] end
  moved = moved or it['>day'] and key:find('#[^#]+#[^#]+$') and not close(key, it)
  looked = looked + (moved and 0 or 1)
  local ttl = it.PK and it.SK and it.ttl and tonumber(it.ttl)
  if moved then -- by a slot that moves
  elseif ttl and ttl > now then
    redis.call('ZADD', KEYS[1], it.ttl, name)
  else
    if ttl then
      redis.call('DEL', key)
      for z, m in pairs(places(T, it)) do redis.call('ZREM', z, m) end
    end
    redis.call('ZREM', KEYS[1], name)
  end
end
return looked
