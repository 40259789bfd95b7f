-- The sorted sets that lead to an item: of its partition, if sort keys like its own are queried, and
-- of the indexes. T is the prefix of the table.
local function places(T, it)
  local t = {}
  if not it.PK then return t end
  local function index(g, pk, sk) -- a partition key that is the sort key of the index is left out of the entry
    if pk and sk then t[T .. g .. pk:sub(2)] = sk:sub(2) .. '\0' .. (sk ~= it.PK and it.PK:sub(2) or '') .. '\0' .. it.SK:sub(2) end
  end
  if it.SK:find('#', 3, true) then t[T .. 'p:' .. it.PK:sub(2)] = it.SK:sub(2) end
  index('g1:', it.GSI1PK, it.GSI1SK)
  index('g2:', it.GSI2PK, it.GSI2SK)
  index('g3:', it.GSI3PK, it.GSI3SK)
  index('g4:', it.GSI4PK, it.GSI4SK)
  return t
end
-- How the set of the items that expire names a hash: without the prefix of all.
local function expiring(T, key) return key:sub(#T + 3) end
