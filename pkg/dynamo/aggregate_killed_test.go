package dynamo_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

// mortal is the network of a replica, until it is killed: then it reaches nothing any more.
type mortal struct {
	http.RoundTripper

	dead atomic.Bool
	last atomic.Pointer[time.Time] // when the last write of a lease was sent that had a reply
}

func (m *mortal) RoundTrip(r *http.Request) (*http.Response, error) {
	if m.dead.Load() {
		return nil, errors.New("the replica is dead")
	}
	sent := time.Now()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	reply, err := m.RoundTripper.RoundTrip(r)
	if err == nil && reply.StatusCode == http.StatusOK && bytes.Contains(body, []byte(`"ls"`)) {
		m.last.Store(&sent)
	}
	return reply, err
}

// served are the admissions of one replica on one limit, in order of time.
type served struct {
	at     []time.Time
	amount []int64
}

// since returns the admissions from a time on, and in all.
func (s *served) since(begin time.Time) (recent, all int64) {
	for i, n := range s.amount {
		all += n
		if !s.at[i].Before(begin) {
			recent += n
		}
	}
	return recent, all
}

// takeUntil has a store take from a bucket until the context is done, and returns the admissions.
func takeUntil(ctx context.Context, t *testing.T, s *dynamo.Store, seed uint64) (all served) {
	t.Helper()
	limits := limitsOf(t, limiter.PerSecond("tps", 100_000))
	r := rand.New(rand.NewPCG(seed, 1)) // #nosec G404 -- of a test
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		op := limiter.Op{
			Bucket: limiter.BucketKey{Namespace: "default", Entity: "key", Resource: "gpt-4"},
			Limits: limits, Generation: 1, Spends: []limiter.Spend{{Limit: "tps", Take: tokens(1 + r.Int64N(9))}},
		}
		admitted, err := s.Take(context.WithoutCancel(ctx), time.Now(), []limiter.Op{op})
		if err != nil && ctx.Err() == nil { // at the end the replica is dead
			t.Errorf("take: %v", err)
		}
		if admitted {
			all.at, all.amount = append(all.at, time.Now()), append(all.amount, op.Spends[0].Take)
		}
		<-tick.C
	}
	return all
}

// Where a replica is killed, usage lacks at most the consumption that its leases had not reported. That
// is all since its last write of the lease, at most 2.2 s before. The admissions of others are all
// there.
func TestUsageLacksOnlyWhatAKilledReplicaHadNotReported(t *testing.T) {
	const late, planning = 2200 * time.Millisecond, 100 * time.Millisecond
	server, f := dynamotest.Start(t), newFed(t)
	lives, admitted := make([]mortal, 3), make([]served, 3)
	stores := make([]*dynamo.Store, 3)
	for i := range stores {
		lives[i].RoundTripper = http.DefaultTransport
		stores[i] = newStore(t, dynamotest.NewClient(server.URL, &lives[i]), func(cfg *dynamo.Config) { cfg.Table, cfg.Leases = f.table, true })
	}
	var work sync.WaitGroup
	ctx, end := context.WithCancel(t.Context())
	for i, s := range stores {
		work.Go(func() { admitted[i] = takeUntil(ctx, t, s, uint64(i)) }) // #nosec G115 -- small
	}
	killed := &lives[2]
	waitFor(t, func() bool {
		s, last := stores[2].Stats(), killed.last.Load()
		return s.Renewed >= 3 && s.Served >= 100 && time.Since(*last) > 3*planning
	})
	killed.dead.Store(true) // first: a report while takes end would have all of them
	died := time.Now()
	end()
	work.Wait()
	closing(t, stores[:2]...)
	var whole, most, itsOwn int64
	for i := range admitted {
		most, itsOwn = admitted[i].since(killed.last.Load().Add(-planning))
		whole += itsOwn
	}
	reader := newStore(t, f.client, func(cfg *dynamo.Config) { cfg.Table = f.table })
	defer closing(t, reader)
	d := &drained{reader, f.stream, map[string]aggregator.Sequence{}}
	page, err := d.ListUsage(t.Context(), "default", limiter.UsageFilter{Window: limiter.UsageMonth}, limiter.Page{})
	if err != nil || len(page.Items) != 1 {
		t.Fatalf("%+v, %v; want one snapshot", page, err)
	}
	lacks := whole - page.Items[0].Limits[0].Tokens
	t.Logf("of %d millitokens %d lack, of which %d may; the replica admitted %d, and had written %v before its end", whole, lacks, most, itsOwn, died.Sub(*killed.last.Load()))
	if lacks <= 0 || lacks > most || most >= itsOwn {
		t.Errorf("of %d millitokens %d lack, want 1 to %d, of the %d of the replica", whole, lacks, most, itsOwn)
	}
	if age := died.Sub(*killed.last.Load()); age > late+planning {
		t.Errorf("the last report was made %v before the end, want at most %v", age, late)
	}
	over, stop := context.WithCancel(t.Context())
	stop()
	_ = stores[2].Close(over) // it can write nothing any more
}
