-- Applies one batch of conditional writes to items, which are hashes: all or none.
-- KEYS: the hash of each write, and of each snapshot of usage. ARGV: a stream of words, see write.go and
-- usage.go. H is the history that the script is loaded for.
local call, format, a, p = redis.call, string.format, ARGV, 4 -- p is the place of the last word that was read
local T, token = a[1], a[2] -- prefix of the table, with its hash tag; of a transaction, '' = none
local latest = tonumber(a[3]) -- Unix ms, by this server's clock: when it is applied at the latest, 0 = at any time
local n = tonumber(a[4]) -- of writes

if call('GET', T .. 'history') ~= H then return redis.error_reply('STALE another history of the server') end
if latest > 0 then
  local t = call('TIME')
  if t[1] * 1000 + t[2] / 1000 > latest then return redis.error_reply('LATE the part of a transaction came too late') end
end

-- Decimal integers of any length. Up to 15 digits a double is exact. Few writes need the functions for more.
local function long()
  local function chunks(m)
    local t, i = {}, #m
    while i > 0 do t[#t + 1] = tonumber(m:sub(math.max(1, i - 13), i)) i = i - 14 end
    return t
  end
  local function joined(t)
    while #t > 1 and t[#t] == 0 do t[#t] = nil end
    local s = { format('%.0f', t[#t]) }
    for i = #t - 1, 1, -1 do s[#s + 1] = format('%014.0f', t[i]) end
    return table.concat(s)
  end
  local function amounts(x, y)
    if #x ~= #y then return #x < #y and -1 or 1 end
    for i = 1, #x, 14 do
      local u, v = tonumber(x:sub(i, i + 13)), tonumber(y:sub(i, i + 13))
      if u ~= v then return u < v and -1 or 1 end
    end
    return 0
  end
  local function sign(s) if s:byte(1) == 45 then return -1, s:sub(2) end return 1, s end
  local function compared(x, y)
    local sx, mx = sign(x)
    local sy, my = sign(y)
    if sx ~= sy then return sx end
    return sx * amounts(mx, my)
  end
  local function added(x, y)
    local sx, mx = sign(x)
    local sy, my = sign(y)
    local r, c = {}, 0
    if sx == sy then
      local u, v = chunks(mx), chunks(my)
      for i = 1, math.max(#u, #v) do
        local s = (u[i] or 0) + (v[i] or 0) + c
        if s >= 1e14 then r[i], c = s - 1e14, 1 else r[i], c = s, 0 end
      end
      if c > 0 then r[#r + 1] = 1 end
    else
      local o = amounts(mx, my)
      if o == 0 then return '0' end
      if o < 0 then mx, my, sx = my, mx, sy end
      local u, v = chunks(mx), chunks(my)
      for i = 1, #u do
        local s = u[i] - (v[i] or 0) - c
        if s < 0 then r[i], c = s + 1e14, 1 else r[i], c = s, 0 end
      end
    end
    return (sx < 0 and '-' or '') .. joined(r)
  end
  return compared, added
end
local function numeric(v) return (v:byte(1) or 255) <= 57 end -- digits and a sign come before the letters of types
local function add(x, y, name) -- to x, which the attribute has
  if not numeric(x) then error({ err = 'WRONGATTR ' .. name .. ' is no number' }) end
  local u, v = tonumber(x), tonumber(y)
  if #x <= 15 and #y <= 15 then return format('%.0f', u + v) end
  if #x > 15 and #y < 15 and u > 0 then
    local low = tonumber(x:sub(-14)) + v
    if low >= 0 and low < 1e14 then return x:sub(1, -15) .. format('%014.0f', low) end -- the digits before it stay
  end
  local _, added = long()
  return added(x, y)
end
local function numbers(x, y)
  local u, v = tonumber(x), tonumber(y)
  if u ~= v then return u < v and -1 or 1 end -- rounding keeps the order
  if x == y then return 0 end
  local compared = long()
  return compared(x, y)
end
local function bytes(x, y)
  for i = 1, math.min(#x, #y) do
    local u, v = x:byte(i), y:byte(i)
    if u ~= v then return u < v and -1 or 1 end
  end
  return #x < #y and -1 or (#x > #y and 1 or 0)
end

local function holds(it) -- a condition
  local op = a[p + 1]
  if op == '&' or op == '|' then
    local parts, all, any = tonumber(a[p + 2]), true, false
    p = p + 2
    for _ = 1, parts do
      if holds(it) then any = true else all = false end
    end
    if op == '&' then return all end
    return any
  end
  if op == '1' then p = p + 1 return true end
  local l, v = it[a[p + 2]], a[p + 3]
  if op == '!' then p = p + 2 return l == nil end
  if op == 'E' then p = p + 2 return l ~= nil end
  p = p + 3
  if op == '=' then return l == v end
  if op == '<>' then return l ~= v end
  if l == nil then return false end
  local c
  if numeric(l) and numeric(v) then c = numbers(l, v)
  elseif l:byte(1) ~= v:byte(1) then return false
  else c = bytes(l, v) end
  if op == '<' then return c < 0 elseif op == '<=' then return c <= 0 elseif op == '>' then return c > 0 end
  return c >= 0
end
-- What a write sets, names and values in turn, and the attributes that it removes. The numbers of its actions come
-- first, then the pairs of those that set, subtract and add. The third result is for a sender that knows the item: what
-- was set, which shows that the reply is that to this write, and the serial number.
local function changes(old, ok, known)
  local set, less, added, removed = tonumber(a[p + 1]), tonumber(a[p + 2]), tonumber(a[p + 3]), tonumber(a[p + 4])
  local count, first = set + less + added, p + 5
  local names = first + 2 * count -- of what is subtracted, and then of what is removed
  p = names + less + removed - 1
  if not ok then return end
  local sets, gone, shown = { unpack(a, first, names - 1) }, {}, known and { unpack(a, first, first + 2 * set - 1) }
  for i = 1, less do
    local from, at = a[names + i - 1], 2 * (set + i)
    local o = old[from]
    if not (o and numeric(o)) then error({ err = 'WRONGATTR ' .. from .. ' is no number' }) end
    sets[at] = add(sets[at], o:byte(1) == 45 and o:sub(2) or (o == '0' and o or '-' .. o), sets[at - 1])
  end
  for i = 2 * (set + less) + 1, 2 * count, 2 do
    local name = sets[i]
    local v = old[name]
    if v then sets[i + 1] = add(v, sets[i + 1], name) end
    if known and name == 'n' then shown[2 * set + 1], shown[2 * set + 2] = name, sets[i + 1] end
  end
  for i = names + less, p do if old[a[i]] then gone[#gone + 1] = a[i] end end
  return sets, gone, shown
end

-- Everything is worked out before the first write.
local plan, all = {}, true
for i = 1, n do
  local kind, image, pk, sk, reads = a[p + 1], a[p + 2], a[p + 3], a[p + 4], tonumber(a[p + 5])
  local key, old, first = KEYS[i], {}, p + 6
  p = p + 5 + reads
  local values = call('HMGET', key, unpack(a, first, p))
  for j = 1, reads do old[a[first + j - 1]] = values[j] or nil end
  local exists, ok = old.PK ~= nil, holds(old)
  all = all and ok
  local sets, gone, shown = changes(old, ok, image == old.n)
  if ok and kind == 'U' and not exists then
    local at = #sets
    sets[at + 1], sets[at + 2], sets[at + 3], sets[at + 4] = 'PK', pk, 'SK', sk
  end
  plan[i] = { kind = kind, key = key, image = image, old = old, exists = exists, ok = ok, sets = sets, gone = gone, shown = shown }
end
local now, out = call('TIME'), {}
if token ~= '' and call('EXISTS', T .. 'tok:' .. token) == 1 then return { 1, now[1], now[2], {} } end
if not all then
  for i, w in ipairs(plan) do out[i] = { w.ok and 1 or 0, call('HGETALL', w.key) } end
  return { 0, now[1], now[2], out }
end
-- Snapshots of usage: some are there, and come first. The others get all attributes, and the names that the
-- bucket's item has in full.
local there, fresh = tonumber(a[p + 1]), tonumber(a[p + 2])
p = p + 2
if there > 0 and call('EXISTS', unpack(KEYS, n + 1, n + there)) < there then return { 2, now[1], now[2], {} } end

-- Has the sorted sets lead to an item as it is, in the place of one as it was.
local function lead(key, was, is)
  if is.ttl and not was.ttl then call('ZADD', T .. 'x', 'NX', is.ttl, key) end
  local old, new = places(T, was), places(T, is)
  for z, m in pairs(old) do if new[z] ~= m then call('ZREM', z, m) end end
  for z, m in pairs(new) do if old[z] ~= m then call('ZADD', z, 0, m) end end
end
local function change()
  for i, w in ipairs(plan) do
    local sets, image = w.sets, {}
    if w.exists and (w.kind == 'D' or w.kind == 'P') then call('DEL', w.key) end
    if #w.gone > 0 then call('HDEL', w.key, unpack(w.gone)) end
    if #sets > 0 then call('HSET', w.key, unpack(sets)) end
    if w.kind ~= 'C' and (w.old.SK or not w.exists) then -- an update that moves no entry has not read SK
      local it = {}
      if w.kind == 'U' then for k, v in pairs(w.old) do it[k] = v end end
      for j = 1, #sets, 2 do it[sets[j]] = sets[j + 1] end
      for _, name in ipairs(w.gone) do it[name] = nil end
      lead(w.key, w.old, it)
    end
    if w.image ~= '' then image = w.shown or call('HGETALL', w.key) end
    out[i] = { 1, image }
  end
  if there + fresh > 0 then
    local added = p + 2 -- names and numbers in turn
    p = p + 1 + 2 * tonumber(a[p + 1])
    local last = p
    for i = n + there + 1, n + there + fresh do
      local key, pk, sk, fields = KEYS[i], a[p + 1], a[p + 2], { unpack(a, p + 4, p + 3 + tonumber(a[p + 3])) }
      p = p + 3 + #fields
      if call('EXISTS', key) == 0 then
        local of, it = call('HMGET', KEYS[1], 'entity_id', 'resource'), { PK = pk, SK = sk }
        for j = 1, #fields, 2 do it[fields[j]] = fields[j + 1] end
        call('HSET', key, 'PK', pk, 'SK', sk, unpack(fields))
        if of[1] then call('HSET', key, 'entity_id', of[1]) end
        if of[2] then call('HSET', key, 'resource', of[2]) end
        lead(key, {}, it)
      end
    end
    for i = n + 1, n + there + fresh do
      local key = KEYS[i]
      for j = added, last, 2 do
        local name, v = a[j], a[j + 1]
        if type(redis.pcall('HINCRBY', key, name, v)) == 'table' then -- beyond 64 bits, or of no snapshot
          local o = redis.pcall('HGET', key, name)
          if type(o) == 'string' and o:find('^%-?%d+$') then call('HSET', key, name, add(o, v, name)) end
        end
      end
    end
  end
  if token ~= '' then call('SET', T .. 'tok:' .. token, '1', 'EX', 900) end
end
-- While a slot of a cluster moves, a key that is deleted counts as moved, and the next write to it fails. A key that is
-- never there fails before.
for i = 1, n do
  if plan[i].kind == 'P' or plan[i].kind == 'D' then call('EXISTS', T .. 'tok:') break end
end
-- A failure from here on leaves what was written.
local whole, failure = pcall(change)
if not whole then return redis.error_reply('PARTIAL ' .. (type(failure) == 'table' and failure.err or tostring(failure))) end
return { 1, now[1], now[2], out }
