package limiter

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// readBudget is how long a read may take. A store that does not answer for so long is
	// unavailable. A caller that has more time reads again.
	readBudget = time.Second
	// maxReads is the most reads under way. Further ones wait for room.
	maxReads = 1024
)

// reads is the reads of records under way. A read continues after the deadlines of its callers, so
// that later calls find the records in the cache. Calls that need the same records wait for the
// same read.
type reads struct {
	store Catalog
	cache *recordCache
	room  chan struct{} // has an element for each read under way

	running sync.WaitGroup
	ctx     context.Context //nolint:containedctx // of all reads: done when they are closed
	stop    context.CancelFunc

	mu       sync.Mutex
	closed   bool
	underWay map[readKey]*read
}

// readKey identifies a read. A call that has seen a newer change waits for no read that began
// before it.
type readKey struct {
	namespace, refs string
	before          uint64 // the newest generation known when it began
}

// read is one read. The rest is set when done is closed.
type read struct {
	done       chan struct{}
	records    []Record
	generation uint64
	err        error
}

func newReads(store Catalog, cache *recordCache) *reads {
	r := &reads{store: store, cache: cache, room: make(chan struct{}, maxReads), underWay: make(map[readKey]*read)}
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r
}

// await reads the records of refs and waits until ctx is done, with its error then. The
// arguments must share no memory with a request.
func (r *reads) await(ctx context.Context, now time.Time, namespace string, refs []Ref, before uint64) (*read, error) {
	key := readKey{namespace, encodeRefs(refs), before}
	deadline, ok := ctx.Deadline()
	repeat := ok && time.Until(deadline) > readBudget
	for {
		one, err := r.once(ctx, now, key, refs)
		if err != nil || !repeat || !errors.Is(one.err, context.DeadlineExceeded) {
			return one, err
		}
	}
}

// once waits for one read.
func (r *reads) once(ctx context.Context, now time.Time, key readKey, refs []Ref) (*read, error) {
	one := r.find(key)
	for one == nil {
		if !r.enter(ctx) {
			return nil, ctx.Err()
		}
		one = r.begin(ctx, now, key, refs)
	}
	select {
	case <-one.done:
		return one, nil
	default:
	}
	select {
	case <-one.done:
		return one, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// enter waits for room for a read, and reports false when ctx is done before.
func (r *reads) enter(ctx context.Context) bool {
	select {
	case r.room <- struct{}{}:
		return true
	default:
	}
	select {
	case r.room <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// find returns the read of a key that is under way, or nil.
func (r *reads) find(key readKey) *read {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.underWay[key]
}

// begin begins a read, for which there is room, unless one is under way. It has the values of ctx,
// such as the span of its first caller, and may outlive it.
func (r *reads) begin(ctx context.Context, now time.Time, key readKey, refs []Ref) *read {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one := r.underWay[key]; one != nil {
		<-r.room
		return one
	}
	one := &read{done: make(chan struct{}), records: make([]Record, len(refs))}
	if r.closed {
		<-r.room
		one.err = fmt.Errorf("reading limits: the limiter is %w", ErrClosed)
		close(one.done)
		return one
	}
	r.underWay[key] = one
	r.running.Go(func() {
		reading, stop := context.WithTimeout(context.WithoutCancel(ctx), readBudget)
		defer stop()
		defer context.AfterFunc(r.ctx, stop)() //nolint:contextcheck // Close of the limiter ends it too
		one.generation, one.err = r.store.Read(reading, key.namespace, refs, one.records)
		r.end(now, key, refs, one)
	})
	return one
}

// close ends the reads under way and waits for them. No further one begins.
func (r *reads) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop()
	r.running.Wait()
}

// end caches the records of a read, unless it was forgotten, and wakes the callers.
func (r *reads) end(now time.Time, key readKey, refs []Ref, one *read) {
	r.mu.Lock()
	if r.underWay[key] == one {
		delete(r.underWay, key)
		if one.err == nil {
			r.cache.keep(now, key.namespace, refs, one.records, key.before, one.generation)
		}
	}
	r.mu.Unlock()
	close(one.done)
	<-r.room
}

// forget lets no further call wait for the reads under way, and lets them cache nothing.
func (r *reads) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.underWay)
}

// encodeRefs returns a string that only the same refs have.
func encodeRefs(refs []Ref) string {
	var b []byte
	for _, ref := range refs {
		b = append(b, byte(ref.Kind))
		for _, name := range [...]string{ref.Entity, ref.Resource} {
			name = ShortName(name)
			b = binary.AppendUvarint(b, uint64(len(name)))
			b = append(b, name...)
		}
	}
	return string(b)
}
