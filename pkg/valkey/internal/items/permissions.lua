-- Fails where the user lacks a permission that the store needs. A script that a permission stops on its way leaves
-- what it wrote. KEYS: the key of the history. The permissions are checked on keys of each kind.
if not redis.acl_check_cmd('script', 'load', '') then return redis.error_reply('NOPERM the user has no permission to run script|load') end
local T = KEYS[1]:sub(1, -#'history' - 1)
for _, kind in ipairs({ 'history', 'table', 'i:', 'p:', 'g1:', 'g2:', 'g3:', 'g4:', 'x', 'tok:' }) do
  local k = T .. kind
  for _, call in ipairs({
    { 'get', k }, { 'set', k, '' }, { 'exists', k }, { 'del', k }, { 'time' },
    { 'hget', k, '' }, { 'hgetall', k }, { 'hmget', k, '' }, { 'hset', k, '', '' }, { 'hdel', k, '' },
    { 'zadd', k, '0', '' }, { 'zrem', k, '' }, { 'zrangebyscore', k, '0', '0' },
    { 'zrangebylex', k, '-', '+' }, { 'zrevrangebylex', k, '+', '-' }, { 'evalsha', '', '1', k },
  }) do
    if not redis.acl_check_cmd(unpack(call)) then
      return redis.error_reply('NOPERM the user has no permission to run ' .. call[1] .. ' on the keys of the table, such as ' .. k)
    end
  end
end
