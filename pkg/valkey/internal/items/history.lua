-- Finds the history of the server and the table, and puts it into its key. KEYS: that key, and the
-- marker of the table. ARGV: number and id of the history that this process knows; the fields of a
-- marker to make where there is none, none = it is not made. Without a marker there is no history.

local replid = redis.call('INFO', 'replication'):match('master_replid:(%x+)')
if not replid then return redis.error_reply('WRONGATTR the server tells no master_replid') end
local made = 0
if #ARGV > 2 and redis.call('EXISTS', KEYS[2]) == 0 then
  for i = 3, #ARGV, 2 do redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1]) end
  made = 1
end
local fields = redis.call('HGETALL', KEYS[2])
if #fields == 0 then return { '0', '', made, fields } end
local id = replid .. ' ' .. (redis.call('HGET', KEYS[2], 'id') or ''):gsub('%W', '')
local number, of = (redis.call('GET', KEYS[1]) or ''):match('^(%d+) (.+)$')
local known = tonumber(ARGV[1])
number = tonumber(number or 0)
if of ~= id or number < known or number == known and of ~= ARGV[2] then -- it is above all that were
  number = math.max(number, known) + 1
  redis.call('SET', KEYS[1], string.format('%.0f', number) .. ' ' .. id)
end
return { string.format('%.0f', number), id, made, fields }
