-- The sorted sets that lead to an item: of its partition, if sort keys like its own are queried, and
-- of the indexes. T is the prefix of the table.
local function places(T, it)
  local t = {}
  if it.PK and it.SK:find('#', 3, true) then t[T .. 'p:' .. it.PK:sub(2)] = it.SK:sub(2) end
  for g = 1, 4 do
    local pk, sk = it['GSI' .. g .. 'PK'], it['GSI' .. g .. 'SK']
    if pk and sk then t[T .. 'g' .. g .. ':' .. pk:sub(2)] = sk:sub(2) .. '\0' .. it.PK:sub(2) .. '\0' .. it.SK:sub(2) end
  end
  return t
end
