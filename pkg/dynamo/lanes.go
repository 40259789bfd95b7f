package dynamo

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
)

const (
	laneShards = 256
	// evictionSample is how many idle lanes are looked at to find one to drop.
	evictionSample = 8
)

// lanes holds the lanes of a process by partition key. A lane that is dropped costs
// the next request of its bucket a write; it holds nothing that is not in the table.
type lanes struct {
	seed   maphash.Seed
	most   int // lanes of a shard, idle ones; more are held only while they run
	shards [laneShards]laneShard
}

type laneShard struct {
	mu    sync.Mutex
	lanes map[string]*lane
	index int      // of several they are locked in this order
	_     [40]byte // a cache line of its own
}

func (t *lanes) init(most int) {
	t.seed = maphash.MakeSeed()
	t.most = max(1, most/laneShards)
	for i := range t.shards {
		t.shards[i].lanes, t.shards[i].index = make(map[string]*lane), i
	}
}

func (t *lanes) shard(pk string) *laneShard {
	return &t.shards[maphash.String(t.seed, pk)%laneShards]
}

// enqueue appends a request to the lane of its bucket. It returns the lane when
// somebody has to run it.
func (t *lanes) enqueue(k schema.Key, r *request) *lane {
	sh := t.shard(k.PK)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	l := sh.lane(k, r.site, t.most)
	l.queue = append(l.queue, r)
	return l.start()
}

// assign gives the lane of a bucket a chore. It returns the lane when somebody has
// to run it.
func (t *lanes) assign(k schema.Key, of site, c chore) *lane {
	sh := t.shard(k.PK)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	l := sh.lane(k, of, t.most)
	l.chores = append(l.chores, c)
	return l.start()
}

// lane returns the lane of a bucket. The shard must be locked.
func (sh *laneShard) lane(k schema.Key, of site, most int) *lane {
	l, ok := sh.lanes[k.PK]
	if !ok {
		if len(sh.lanes) >= most {
			sh.evict()
		}
		l = &lane{key: k, site: of, home: sh, knows: knowledge{now: schema.MinTime, index: schema.ShardIndex(k)}, holder: holder{clock: schema.MinTime}}
		sh.lanes[k.PK] = l
	}
	return l
}

// start returns the lane unless it runs already.
func (l *lane) start() *lane {
	if l.running {
		return nil
	}
	l.running = true
	return l
}

// gather lets goroutines run that are ready to, as long as they bring requests: of
// callers who were answered together most ask again at once, and go into one write
// instead of two. Nothing is waited for.
func (t *lanes) gather(l *lane, by awsdb.Loop) {
	const most = 16
	sh := t.shard(l.key.PK)
	for n, before := 0, -1; n < most; n++ {
		sh.mu.Lock()
		now := len(l.queue)
		sh.mu.Unlock()
		if now == before {
			return
		}
		before = now
		by.Yield()
	}
}

// next returns what has arrived in a lane that runs, chores among its todo. When
// nothing has, there is nothing to do and last is true, the lane stops: from then on
// it is another goroutine's.
func (t *lanes) next(l *lane, last bool, now func() time.Time) (arrived []*request, stopped bool) {
	sh := t.shard(l.key.PK)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	queue := l.queue
	l.todo = append(l.todo, l.chores...)
	l.queue, l.chores = nil, nil
	if len(queue) == 0 && len(l.todo) == 0 && last && !l.holder.wanted {
		l.running, l.used = false, now()
		return nil, true
	}
	return queue, false
}

// evict drops the longest idle of a few lanes. The shard must be locked.
func (sh *laneShard) evict() {
	var oldest *lane
	left := evictionSample
	for _, l := range sh.lanes {
		if !l.running && !l.holder.busy() && (oldest == nil || l.used.Before(oldest.used)) {
			oldest = l
		}
		if left--; left == 0 {
			break
		}
	}
	if oldest != nil {
		delete(sh.lanes, oldest.key.PK)
	}
}

// sweep drops the lanes of the shards from first up to end that have been idle since before.
func (t *lanes) sweep(first, end int, before time.Time) {
	for i := first; i < end; i++ {
		sh := &t.shards[i]
		sh.mu.Lock()
		for pk, l := range sh.lanes {
			if !l.running && !l.holder.busy() && l.used.Before(before) {
				delete(sh.lanes, pk)
			}
		}
		sh.mu.Unlock()
	}
}

// count returns the number of lanes held now.
func (t *lanes) count() int {
	n := 0
	for i := range t.shards {
		sh := &t.shards[i]
		sh.mu.Lock()
		n += len(sh.lanes)
		sh.mu.Unlock()
	}
	return n
}

// serve runs a lane beside its caller, which holds a piece of work.
func (s *Store) serve(l *lane) {
	s.work.Add(1)
	s.loop.Start(func() { s.run(l) })
}
