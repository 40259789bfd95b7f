-- Sums and comparisons of attributes, as hashes have them.
local format = string.format

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
  if #x <= 15 and #y <= 15 then return u + v end -- the server writes all digits of a number below 2^53
  if #x > 15 and #y < 15 and u > 0 then
    local low = tonumber(x:sub(-14)) + v
    if low >= 0 and low < 1e14 then return x:sub(1, -15) .. format('%014.0f', low) end -- the digits before it stay
  end
  local _, added = long()
  return added(x, y)
end
local function numbers(x, y)
  if x:byte(1) ~= 45 and y:byte(1) ~= 45 then -- of two that are not below 0 the longer is greater
    if x == y then return 0 end
    if #x == #y then return x < y and -1 or 1 end
    return #x < #y and -1 or 1
  end
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
local function compares(l, op, v) -- an attribute, nil or false where there is none, with a value
  if op == '=' then return l == v end
  if op == '<>' then return l ~= v end
  if not l then return false end
  local c
  if numeric(l) and numeric(v) then c = numbers(l, v)
  elseif l:byte(1) ~= v:byte(1) then return false
  else c = bytes(l, v) end
  if op == '<' then return c < 0 elseif op == '<=' then return c <= 0 elseif op == '>' then return c > 0 end
  return c >= 0
end
-- Adds to the greater of an attribute, nil or false where there is none, and a floor.
local function above(x, floor, y, name)
  if not x then return add(floor, y, name) end
  if not numeric(x) or numbers(x, floor) > 0 then return add(x, y, name) end
  return add(floor, y, name)
end
