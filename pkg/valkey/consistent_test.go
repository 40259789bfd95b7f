package valkey_test

import (
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/valkey"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

// checker lists what is wrong with a table: items without their entries in the sorted sets, and entries
// without their items. KEYS: none. ARGV: the prefix.
const checker = `
local T, wrong = ARGV[1], {}
local function say(...) wrong[#wrong + 1] = table.concat({...}, ' ') end
local function item(key)
  local flat, it = redis.call('HGETALL', key), {}
  for i = 1, #flat, 2 do it[flat[i]] = flat[i + 1] end
  return it
end
local function needs(set, member, key)
  if not redis.call('ZSCORE', set, member) then say('item', key, 'has no entry in', set) end
end
local function entry(it, g)
  local pk, sk = it['GSI' .. g .. 'PK'], it['GSI' .. g .. 'SK']
  if pk and sk then return T .. 'g' .. g .. ':' .. pk:sub(2), sk:sub(2) .. '\0' .. (sk ~= it.PK and it.PK:sub(2) or '') .. '\0' .. it.SK:sub(2) end
end
local items = 0
for _, key in ipairs(redis.call('KEYS', T .. 'i:*')) do
  local it = item(key)
  items = items + 1
  if not (it.PK and it.SK) or key ~= T .. 'i:' .. it.PK:sub(2) .. '\0' .. it.SK:sub(2) then say('item', key, 'has another key in it')
  else
    if it.SK:find('#', 3, true) then needs(T .. 'p:' .. it.PK:sub(2), it.SK:sub(2), key) end
    for g = 1, 4 do
      local set, member = entry(it, g)
      if set then needs(set, member, key) end
    end
    if it.ttl then needs(T .. 'x', key:sub(#T + 3), key) end
  end
end
for _, set in ipairs(redis.call('KEYS', T .. 'p:*')) do
  for _, sk in ipairs(redis.call('ZRANGE', set, 0, -1)) do
    if redis.call('EXISTS', T .. 'i:' .. set:sub(#T + 3) .. '\0' .. sk) == 0 then say('entry', sk, 'of', set, 'has no item') end
  end
end
for g = 1, 4 do
  for _, set in ipairs(redis.call('KEYS', T .. 'g' .. g .. ':*')) do
    for _, member in ipairs(redis.call('ZRANGE', set, 0, -1)) do
      local sort, pk, sk = member:match('^([^%z]*)%z([^%z]*)%z(.*)$')
      local of, m = entry(item(T .. 'i:' .. (pk ~= '' and pk or sort) .. '\0' .. sk), g)
      if of ~= set or m ~= member then say('entry', member, 'of', set, 'has no item that it leads to') end
    end
  end
end
if #wrong == 0 then return 'consistent: ' .. (items > 0 and 'items' or 'empty') end
return table.concat(wrong, '\n')
`

// checkConsistent checks the items of a table and the sets that lead to them. It must have some.
func checkConsistent(t *testing.T, server *valkeytest.Server, name string) {
	t.Helper()
	if found := server.Must("EVAL", checker, "0", "{"+name+"}:"); found != "consistent: items" {
		t.Errorf("the table %s: %.2000q", name, found)
	}
}

// The checker finds what it is for.
func TestConsistent(t *testing.T) {
	p := newPair(t, func(*valkey.Config) {})
	p.put()
	limits, err := limiter.NewLimits(limiter.PerSecond("l", 5))
	if err != nil {
		t.Fatal(err)
	}
	op := limiter.Op{Bucket: limiter.BucketKey{Namespace: "ns", Entity: "e"}, Limits: limits, Spends: []limiter.Spend{{Limit: "l", Take: limiter.Milli}}}
	if _, err := p.first.Take(t.Context(), time.Now(), []limiter.Op{op}); err != nil {
		t.Fatal(err)
	}
	checkConsistent(t, p.server, p.cfg.Name)
	prefix := "{" + p.cfg.Name + "}:"
	consistent := p.server.Must("EVAL", checker, "0", prefix)
	for _, set := range []string{"p", "g2"} {
		key := p.server.Must("EVAL", "return redis.call('KEYS', ARGV[1])[1] or ''", "0", prefix+set+":*")
		if key == "" {
			t.Fatalf("there is no set %s", set)
		}
		p.server.Must("COPY", key, "copy")
		p.server.Must("DEL", key)
		if found := p.server.Must("EVAL", checker, "0", prefix); found == consistent {
			t.Errorf("a table without %s: %q", key, found)
		}
		p.server.Must("COPY", "copy", key, "REPLACE")
		p.server.Must("DEL", "copy")
		p.server.Must("ZADD", key, "0", "a\x00b\x00c")
		if found := p.server.Must("EVAL", checker, "0", prefix); found == consistent {
			t.Errorf("a table with an entry too many in %s: %q", key, found)
		}
		p.server.Must("ZREM", key, "a\x00b\x00c")
	}
	checkConsistent(t, p.server, p.cfg.Name)
}
