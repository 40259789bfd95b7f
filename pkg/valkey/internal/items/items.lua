-- Applies one batch of conditional writes to items, which are hashes: all or none.
-- KEYS: the hash of each write, and of each snapshot of usage. ARGV: a stream of words, see write.go and
-- usage.go. H is the history that the script is loaded for.
local a, p = ARGV, 0
local function word() p = p + 1 return a[p] end
local T = word()     -- prefix of the table, with its hash tag
local token = word() -- of a transaction, '' = none
local latest = tonumber(word()) -- Unix ms, by this server's clock: when it is applied at the latest, 0 = at any time

if redis.call('GET', T .. 'history') ~= H then return redis.error_reply('STALE another history of the server') end
if latest > 0 then
  local t = redis.call('TIME')
  if t[1] * 1000 + t[2] / 1000 > latest then return redis.error_reply('LATE the part of a transaction came too late') end
end

-- Decimal integers of any length. Up to 15 digits a double is exact.
local function chunks(m)
  local t, i = {}, #m
  while i > 0 do t[#t + 1] = tonumber(m:sub(math.max(1, i - 13), i)) i = i - 14 end
  return t
end
local function joined(t)
  while #t > 1 and t[#t] == 0 do t[#t] = nil end
  local s = { string.format('%.0f', t[#t]) }
  for i = #t - 1, 1, -1 do s[#s + 1] = string.format('%014.0f', t[i]) end
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
local function numbers(x, y)
  if #x <= 15 and #y <= 15 then
    local u, v = tonumber(x), tonumber(y)
    return u < v and -1 or (u > v and 1 or 0)
  end
  local sx, mx = sign(x)
  local sy, my = sign(y)
  if sx ~= sy then return sx end
  return sx * amounts(mx, my)
end
local function add(x, y)
  if #x <= 15 and #y <= 15 then return string.format('%.0f', tonumber(x) + tonumber(y)) end
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
local function numeric(v) return (v:byte(1) or 255) <= 57 end -- digits and a sign come before the letters of types
local function number(it, name)
  local v = it[name]
  if v and not numeric(v) then error({ err = 'WRONGATTR ' .. name .. ' is no number' }) end
  return v
end
local function bytes(x, y)
  for i = 1, math.min(#x, #y) do
    local u, v = x:byte(i), y:byte(i)
    if u ~= v then return u < v and -1 or 1 end
  end
  return #x < #y and -1 or (#x > #y and 1 or 0)
end

local function words(n)
  local t = {}
  for i = 1, n do t[i] = word() end
  return t
end
-- What an item has of some attributes.
local function read(key, names)
  local values, it = redis.call('HMGET', key, unpack(names)), {}
  for i, name in ipairs(names) do it[name] = values[i] or nil end
  return it
end
local function holds(it) -- a condition
  local op = word()
  if op == '1' then return true end
  if op == '&' or op == '|' then
    local n, all, any = tonumber(word()), true, false
    for _ = 1, n do
      if holds(it) then any = true else all = false end
    end
    if op == '&' then return all end
    return any
  end
  local l = it[word()]
  if op == '!' then return l == nil end
  if op == 'E' then return l ~= nil end
  local v = word()
  if op == '<>' then return l ~= v end
  if l == nil then return false end
  if op == '=' then return l == v end
  local c
  if numeric(l) and numeric(v) then c = numbers(l, v)
  elseif l:byte(1) ~= v:byte(1) then return false
  else c = bytes(l, v) end
  if op == '<' then return c < 0 elseif op == '<=' then return c <= 0 elseif op == '>' then return c > 0 end
  return c >= 0
end

-- Everything is worked out before the first write.
local plan, all, n = {}, true, tonumber(word())
for i = 1, n do
  local w = { kind = word(), key = KEYS[i], image = word(), pk = word(), sk = word() }
  local old = read(w.key, words(tonumber(word())))
  w.old, w.exists, w.ok = old, old.PK ~= nil, holds(old)
  all = all and w.ok
  local sets, gone, changes = {}, {}, {}
  if w.kind == 'U' and not w.exists then sets[1], sets[2], sets[3], sets[4] = 'PK', w.pk, 'SK', w.sk end
  for _ = 1, tonumber(word()) do
    local kind, name = word(), word()
    if kind == 'R' then if old[name] then gone[#gone + 1] = name end
    else
      local v = word()
      local from = kind == '-' and word()
      if not w.ok then v = nil
      elseif kind == 'A' then v = old[name] and add(number(old, name), v) or v
      elseif from then
        local o = number(old, from)
        if not o then return redis.error_reply('WRONGATTR ' .. from .. ' is no number') end
        v = add(v, o:byte(1) == 45 and o:sub(2) or (o == '0' and o or '-' .. o))
      end
      local at = #sets
      sets[at + 1], sets[at + 2] = name, v
      if kind == 'S' or name == 'n' then -- the reply shows that it is that to this write
        at = #changes
        changes[at + 1], changes[at + 2] = name, v
      end
    end
  end
  w.sets, w.gone, w.changes, plan[i] = sets, gone, changes, w
end
local now, out = redis.call('TIME'), {}
if token ~= '' and redis.call('EXISTS', T .. 'tok:' .. token) == 1 then return { 1, now[1], now[2], {} } end
if not all then
  for i, w in ipairs(plan) do out[i] = { w.ok and 1 or 0, redis.call('HGETALL', w.key) } end
  return { 0, now[1], now[2], out }
end
-- Snapshots of usage: some are there, and come first. The others get all attributes, and the names that the
-- bucket's item has in full.
local there, fresh = tonumber(word()), tonumber(word())
if there > 0 and redis.call('EXISTS', unpack(KEYS, n + 1, n + there)) < there then return { 2, now[1], now[2], {} } end

local function overlaid(w)
  local it = {}
  if w.kind == 'U' then for k, v in pairs(w.old) do it[k] = v end end
  for i = 1, #w.sets, 2 do it[w.sets[i]] = w.sets[i + 1] end
  for _, name in ipairs(w.gone) do it[name] = nil end
  return it
end
-- Has the sorted sets lead to an item as it is, in the place of one as it was.
local function lead(key, was, is)
  if is.ttl and not was.ttl then redis.call('ZADD', T .. 'x', 'NX', is.ttl, key) end
  local old, new = places(T, was), places(T, is)
  for z, m in pairs(old) do if new[z] ~= m then redis.call('ZREM', z, m) end end
  for z, m in pairs(new) do if old[z] ~= m then redis.call('ZADD', z, 0, m) end end
end
local function change()
  for i, w in ipairs(plan) do
    local sets, image = w.sets, {}
    if w.exists and (w.kind == 'D' or w.kind == 'P') then redis.call('DEL', w.key) end
    if #w.gone > 0 then redis.call('HDEL', w.key, unpack(w.gone)) end
    if #sets > 0 then redis.call('HSET', w.key, unpack(sets)) end
    if w.kind ~= 'C' and (w.old.SK or not w.exists) then -- an update that moves no entry has not read SK
      lead(w.key, w.old, overlaid(w))
    end
    if w.image == w.old.n then image = w.changes
    elseif w.image ~= '' then image = redis.call('HGETALL', w.key) end
    out[i] = { 1, image }
  end
  if there + fresh > 0 then
    local added = words(2 * tonumber(word())) -- names and numbers in turn
    for i = n + there + 1, n + there + fresh do
      local key, pk, sk, fields = KEYS[i], word(), word(), words(tonumber(word()))
      if redis.call('EXISTS', key) == 0 then
        local of, it = redis.call('HMGET', KEYS[1], 'entity_id', 'resource'), { PK = pk, SK = sk }
        for j = 1, #fields, 2 do it[fields[j]] = fields[j + 1] end
        redis.call('HSET', key, 'PK', pk, 'SK', sk, unpack(fields))
        if of[1] then redis.call('HSET', key, 'entity_id', of[1]) end
        if of[2] then redis.call('HSET', key, 'resource', of[2]) end
        lead(key, {}, it)
      end
    end
    for i = n + 1, n + there + fresh do
      local key = KEYS[i]
      for j = 1, #added, 2 do
        local name, v = added[j], added[j + 1]
        if type(redis.pcall('HINCRBY', key, name, v)) == 'table' then -- beyond 64 bits, or of no snapshot
          local o = redis.pcall('HGET', key, name)
          if type(o) == 'string' and o:find('^%-?%d+$') then redis.call('HSET', key, name, add(o, v)) end
        end
      end
    end
  end
  if token ~= '' then redis.call('SET', T .. 'tok:' .. token, '1', 'EX', 900) end
end
-- While a slot of a cluster moves, a key that is deleted counts as moved, and the next write to it fails. A key that is
-- never there fails before.
for _, w in ipairs(plan) do
  if w.kind == 'P' or w.kind == 'D' then redis.call('EXISTS', T .. 'tok:') break end
end
-- A failure from here on leaves what was written.
local whole, failure = pcall(change)
if not whole then return redis.error_reply('PARTIAL ' .. (type(failure) == 'table' and failure.err or tostring(failure))) end
return { 1, now[1], now[2], out }
