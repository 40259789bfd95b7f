-- Applies one batch of conditional writes to items, which are hashes: all or none.
-- KEYS: the hash of each write, and of each snapshot of usage. ARGV: a stream of words, see write.go and usage.go.
local p = 4 -- the place of the last word that was read
local token = a[2] -- of a transaction, '' = none
local latest = tonumber(a[3]) -- Unix ms, by this server's clock: when it is applied at the latest, 0 = at any time
local n = tonumber(a[4]) -- of writes

if latest > 0 then
  local t = call('TIME')
  if t[1] * 1000 + t[2] / 1000 > latest then return redis.error_reply('LATE the part of a transaction came too late') end
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
  return compares(l, op, v)
end
-- What a write sets, names and values in turn, and the attributes that it removes. The numbers of its actions come
-- first, then the pairs of those that set and add, the names of those that remove, and floors between names and amounts.
local function changes(old, ok)
  local set, added, removed, raised = tonumber(a[p + 1]), tonumber(a[p + 2]), tonumber(a[p + 3]), tonumber(a[p + 4])
  local first = p + 5
  local names = first + 2 * (set + added) -- of what is removed
  local floors = names + removed
  p = floors + 3 * raised - 1
  if not ok then return end
  local sets, gone = { unpack(a, first, names - 1) }, {}
  for i = 2 * set + 1, 2 * (set + added), 2 do
    local v = old[sets[i]]
    if v then sets[i + 1] = add(v, sets[i + 1], sets[i]) end
  end
  for i = names, floors - 1 do if old[a[i]] then gone[#gone + 1] = a[i] end end
  for i = floors, p, 3 do
    local at = #sets
    sets[at + 1], sets[at + 2] = a[i], above(old[a[i]], a[i + 1], a[i + 2], a[i])
  end
  return sets, gone
end

-- Everything is worked out before the first write.
local function planned(key) -- the next write
  local kind, image, pk, sk, reads = a[p + 1], a[p + 2], a[p + 3], a[p + 4], tonumber(a[p + 5])
  local old, first = {}, p + 6
  p = p + 5 + reads
  local values = call('HMGET', key, unpack(a, first, p))
  for j = 1, reads do old[a[first + j - 1]] = values[j] or nil end
  local exists, ok = old.PK ~= nil, holds(old)
  local sets, gone = changes(old, ok)
  if ok and kind == 'U' and not exists then
    local at = #sets
    sets[at + 1], sets[at + 2], sets[at + 3], sets[at + 4] = 'PK', pk, 'SK', sk
  end
  return { kind = kind, key = key, wanted = image ~= '', old = old, exists = exists, ok = ok, sets = sets, gone = gone }
end
local plan, all = {}, true
for i = 1, n do
  local either = a[p + 1] == '?' -- the first of two whose condition holds
  if either then p = p + 1 end
  plan[i] = planned(KEYS[i])
  if either then
    local other = planned(KEYS[i])
    if not plan[i].ok then plan[i] = other end
  end
  all = all and plan[i].ok
end
local now, out = call('TIME'), {}
if token ~= '' and call('EXISTS', T .. 'tok:' .. token) == 1 then return { 1, now[1], now[2], {} } end
if not all then
  for i, w in ipairs(plan) do out[i] = { w.ok and 1 or 0, call('HGETALL', w.key) } end
  return { 0, now[1], now[2], out }
end
-- Use is counted in the snapshot of its hour. The sweep adds an hour that is over to its day and its month, and until then
-- they name it. The snapshots that a message has no attributes of have to be there, and the hour has to be such a one.
local counts = tonumber(a[p + 1]) -- of the numbers that are added
local names, hour, open = p + 2, KEYS[n + 1], false
if counts > 0 then
  p = names + 2 * counts
  open = redis.pcall('HGET', hour, '>day')
  if a[p] == '0' and not open then return { 2, now[1], now[2], {} } end
end
local function count(key) -- what is no snapshot counts nothing
  local had = redis.pcall('HMGET', key, unpack(a, names, names + counts - 1))
  local use = had.err and {} or uses(names, names + counts, counts, had, 1)
  if #use > 0 then call('HSET', key, unpack(use)) end
end

-- Has the sorted sets lead to an item as it is, in the place of one as it was.
local function lead(key, was, is)
  if is.ttl and not was.ttl then call('ZADD', T .. 'x', 'NX', is.ttl, expiring(T, key)) end
  local old, new = places(T, was), places(T, is)
  for z, m in pairs(old) do if new[z] ~= m then call('ZREM', z, m) end end
  for z, m in pairs(new) do if old[z] ~= m then call('ZADD', z, 0, m) end end
end
-- Makes the snapshots that are not there, with the names that the bucket's item has in full, and has those of an hour that
-- is open name each other. Use of an hour that is over is counted in all of them.
local function snapshots()
  local over, named = call('EXISTS', hour) == 1, call('HMGET', KEYS[1], 'entity_id', 'resource')
  local function window(i) return KEYS[n + i]:match('[^#]+#[^#]+$') end -- how the key ends: the three begin alike
  local at = p + 1
  for i = 1, 3 do
    local key, words = KEYS[n + i], a[at + 3]
    local fields, it = { 'PK', a[at + 1], 'SK', a[at + 2], unpack(a, at + 4, at + 3 + words) }, {}
    at = at + 3 + words
    local marks = over and {} or i == 1 and { '>day', 'S' .. window(2), '>month', 'S' .. window(3) } or { '<' .. window(1), '1' }
    local there = i == 1 and over or i > 1 and call('EXISTS', key) == 1
    if not there then
      for j, name in ipairs({ 'entity_id', 'resource' }) do
        if named[j] then fields[#fields + 1], fields[#fields + 2] = name, named[j] end
      end
      for j = 1, #fields, 2 do it[fields[j]] = fields[j + 1] end
      for _, mark in ipairs(marks) do fields[#fields + 1] = mark end
      call('HSET', key, unpack(fields))
      if i == 1 then call('ZADD', T .. 'x', a[p + 1], expiring(T, key)) end -- the sweep looks at it before it expires
      lead(key, {}, it)
    elseif #marks > 0 then
      redis.pcall('HSET', key, unpack(marks))
    end
  end
  if over then
    count(KEYS[n + 2])
    count(KEYS[n + 3])
  end
end
local function change()
  for i, w in ipairs(plan) do
    local sets, image = w.sets, {}
    if w.exists and (w.kind == 'D' or w.kind == 'P') then call('DEL', w.key) end
    if #w.gone > 0 then call('HDEL', w.key, unpack(w.gone)) end
    if #sets > 0 then call('HSET', w.key, unpack(sets)) end
    if w.old.SK or not w.exists then -- an update that moves no entry has not read SK
      local it = {}
      if w.kind == 'U' then for k, v in pairs(w.old) do it[k] = v end end
      for j = 1, #sets, 2 do it[sets[j]] = sets[j + 1] end
      for _, name in ipairs(w.gone) do it[name] = nil end
      lead(w.key, w.old, it)
    end
    if w.wanted then image = call('HGETALL', w.key) end
    out[i] = { 1, image }
  end
  if counts > 0 then
    if a[p] ~= '0' and not open then snapshots() end
    count(hour)
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
if not whole then return partial(failure) end
return { 1, now[1], now[2], out }
