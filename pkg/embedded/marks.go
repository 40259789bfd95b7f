package embedded

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// markShards keeps a sweep of one shard short: a shard has some 20,000 marks at most.
const markShards = 256

// marks are the owners of settled reservations.
type marks struct {
	seed   maphash.Seed
	latest atomic.Int64 // latest time of a call, Unix ms
	count  atomic.Int64
	shards [markShards]markShard
}

// markShard is a part of the marks, by hash of the ID. A nil map means that the store is closed.
type markShard struct {
	mu    sync.Mutex
	marks map[string]mark // by markName
	_     [48]byte        // a cache line of its own
}

// mark records that a reservation is settled. In the file its name is the key. Its owner and its
// time of expiry are the value.
type mark struct {
	owner   string
	expires int64 // Unix ms
}

// markName identifies a mark by ID and namespace, in one string to save memory. The first byte is
// the ID's length, so that ID and namespace cannot be confused.
func markName(m *limiter.Mark) string {
	return string([]byte{byte(len(m.ID))}) + m.ID + m.Namespace // #nosec G115 -- at most MaxMarkLength
}

// put returns the change that writes a mark.
func (m mark) put(name string) change {
	c := change{table: datafile.Settled}
	c.key, c.value = keyOf([]byte(name))
	c.value = appendText(binary.AppendVarint(c.value, m.expires), m.owner)
	return c
}

func (k *marks) markShard(id string) *markShard {
	return &k.shards[maphash.String(k.seed, id)%markShards]
}

func (k *marks) init() {
	k.seed = maphash.MakeSeed()
	k.latest.Store(math.MinInt64)
	for i := range k.shards {
		k.shards[i].marks = make(map[string]mark)
	}
}

// noteTime records the time of a call.
func (k *marks) noteTime(now int64) {
	for {
		latest := k.latest.Load()
		if latest >= now || k.latest.CompareAndSwap(latest, now) {
			return
		}
	}
}

// load reads the marks. Those that have expired are in the file until they are swept.
func (k *marks) load(tx *datafile.Tx) error {
	return tx.Each(datafile.Settled, nil, func(key, value []byte) error {
		name, value, ok := identityOf(key, value)
		r := &recordReader{Rest: value, Failed: !ok}
		m := mark{expires: r.Int(math.MinInt64, math.MaxInt64), owner: r.Text()}
		if r.Failed || len(r.Rest) > 0 || len(name) == 0 || int(name[0]) > len(name)-1 {
			return fmt.Errorf("mark %x: %w", key, errFormat)
		}
		k.markShard(string(name[1 : 1+name[0]])).marks[string(name)] = m
		k.count.Add(1)
		return nil
	})
}

// markSlack is how long the file keeps expired marks, for a restart with a clock that was set back.
const markSlack = 2 * time.Hour

func (k *marks) close() {
	for i := range k.shards {
		sh := &k.shards[i]
		sh.mu.Lock()
		k.count.Add(-int64(len(sh.marks)))
		sh.marks = nil
		sh.mu.Unlock()
	}
}
