-- Applies one plain write, as takes, charges and refunds are, see plain.go: its comparisons hold together, and it sets and
-- adds. KEYS: the hash of its item, and of the hour that counts its use, if any. T is the prefix of the table, and H the
-- history that the script is loaded for.
local call, a = redis.call, ARGV
if call('GET', T .. 'history') ~= H then return redis.error_reply('STALE another history of the server') end

local function partial(failure)
  return redis.error_reply('PARTIAL ' .. (type(failure) == 'table' and failure.err or tostring(failure)))
end
-- Appends names and sums in turn: of numbers of ARGV, and of the values that there are.
local function sums(to, names, numbers, n, values, first)
  local at = #to
  for i = 0, n - 1 do
    local name, x, y = a[names + i], values[first + i], a[numbers + i]
    to[at + 1], to[at + 2] = name, x and add(x, y, name) or y
    at = at + 2
  end
  return to
end

-- The same of use, as far as there are numbers: what is none stays as it is.
local function uses(names, numbers, n, values, first)
  local whole, use = pcall(sums, {}, names, numbers, n, values, first)
  if whole then return use end
  use = {}
  for i = 0, n - 1 do
    local one, sum = pcall(sums, {}, names + i, numbers + i, 1, values, first + i)
    if one then use[#use + 1], use[#use + 2] = sum[1], sum[2] end
  end
  return use
end

if a[1] == 'plain' then
  local known, added, read, key, hour = a[2], a[3] + 0, a[4] + 0, KEYS[1], KEYS[2]
  local values, now = call('HMGET', key, unpack(a, 5, 4 + read)), call('TIME')
  local p = 5 + read + added
  local last = p + 3 * a[p]
  for i = p + 1, last, 3 do
    if not compares(values[a[i] + 0], a[i + 1], a[i + 2]) then return { 0, now[1], now[2], { { 0, call('HGETALL', key) } } } end
  end
  local first = last + 2 -- of what is added to above a floor
  p = first + 4 * a[last + 1]
  last = p + 2 * a[p]
  local id, is, use = a[p + 2], sums({ unpack(a, p + 1, last) }, 5, 5 + read, added, values, 1), {}
  local at = #is
  for i = first, p - 1, 4 do
    is[at + 1], is[at + 2] = a[i + 1], above(values[a[i] + 0], a[i + 2], a[i + 3], a[i + 1])
    at = at + 2
  end
  if hour then
    local n = a[last + 1] + 0
    local had = redis.pcall('HMGET', hour, '>day', unpack(a, last + 2, last + 1 + n))
    if not had.err then -- what is no snapshot counts nothing
      if not had[1] then return { 2, now[1], now[2], {} } end
      use = uses(last + 2, last + 2 + n, n, had, 2)
    end
  end
  call('HSET', key, unpack(is))
  -- A failure from here on leaves what was written.
  local whole, image = pcall(function()
    if #use > 0 then call('HSET', hour, unpack(use)) end
    return known ~= values[1] and { { 1, call('HGETALL', key) } }
  end)
  if not whole then return partial(image) end
  return { 1, now[1], now[2], image or id }
end
