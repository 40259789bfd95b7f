package fleet_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

// scenario is a run of a fleet.
type scenario struct {
	load      string          // the load of the replicas
	history   string          // or which bucket they keep the whole history of
	skews     []time.Duration // of the clock of each replica
	decisions int64           // of all replicas
	kills     int             // of each replica but the first, in the middle of its share
	faults    faults
	defect    string
	patience  time.Duration
	units     int64         // a second, that a shard is good for; 0 = more than any has
	quiet     time.Duration // before shards are merged
}

// fleet is the table and the proxy of a run.
type fleet struct {
	scenario
	asked load
	seed  uint64
	table string
	proxy *dynamotest.Proxy
	dir   string
	held  *lateness
	start time.Time
	took  time.Duration
	calm  chan struct{} // closed: the busy callers end
	stop  chan struct{} // closed: all end

	mu        sync.Mutex
	histories []history
	stats     dynamo.Stats
	reads     int64
	killed    int
}

// newFleet makes the table of a run, with the limits that replicas read.
func newFleet(t *testing.T, s scenario) *fleet {
	t.Helper()
	server := dynamotest.Start(t)
	f := &fleet{scenario: s, seed: rand.Uint64(), table: dynamotest.TableName(t), dir: t.TempDir(), start: time.Now(), calm: make(chan struct{}), stop: make(chan struct{})}
	var err error
	if s.load != "" {
		f.asked, err = loadOf(s.load)
	}
	if err != nil {
		t.Fatal(err)
	}
	client := server.Client(t)
	if err := dynamo.CreateTable(t.Context(), client, f.table); err != nil {
		t.Fatal(err)
	}
	store, err := dynamo.New(client, dynamo.Config{Table: f.table})
	if err != nil {
		t.Fatal(err)
	}
	limits, err := limiter.NewLimits(limiter.PerMinute("rpm", 60))
	for _, ref := range catalogRefs() {
		if err == nil {
			err = store.PutLimits(t.Context(), limiter.DefaultNamespace, ref, limiter.Record{Limits: limits})
		}
	}
	if err == nil {
		err = store.Close(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	f.held = &lateness{}
	f.proxy = dynamotest.NewProxy(t, server.URL, f.held.plan(rand.New(rand.NewPCG(f.seed, 0)), s.faults))
	t.Cleanup(f.held.wait)
	return f
}

// run makes the decisions of a load.
func (f *fleet) run(ctx context.Context) error { return f.each(ctx, f.bear) }

// each does something with every replica at once, by their numbers.
func (f *fleet) each(ctx context.Context, do func(context.Context, int) error) error {
	ctx, cancel := context.WithTimeout(ctx, f.patience)
	defer cancel()
	began := time.Now()
	defer func() { f.took = time.Since(began) }()
	g, ctx := errgroup.WithContext(ctx)
	for i := range f.skews {
		g.Go(func() error { return do(ctx, i) })
	}
	return g.Wait()
}

// oneShard is a number of units a second at which no bucket is split.
const oneShard = 1 << 40

// job returns the common part of all jobs of a replica, in one of its runs.
func (f *fleet) job(work string, i, life int) job {
	j := job{
		Work: work, Replica: fmt.Sprintf("%d.%d", i, life), Endpoint: f.proxy.URL, Table: f.table, Defect: f.defect,
		Seed: f.seed + uint64(i)<<8 + uint64(life), Skew: f.skews[i], Patience: f.patience,
		Units: cmp.Or(f.units, oneShard), Quiet: f.quiet,
	}
	j.History = filepath.Join(f.dir, j.Replica)
	return j
}

// bear makes a replica's share of the decisions. It is killed and started again for
// as often as the scenario says.
func (f *fleet) bear(ctx context.Context, i int) error {
	left, kills := f.decisions/int64(len(f.skews)), 0
	if i > 0 {
		kills = f.kills
	}
	for life := 0; ; life++ {
		j := f.job("load", i, life)
		j.Load, j.Decisions = f.load, left
		until := left / int64(kills-life+1)
		if err := f.live(ctx, j, func(e event) bool { return life < kills && e.Decided >= until }); err != nil {
			return err
		}
		h, err := readHistory(j.Replica, j.History)
		if err != nil {
			return err
		}
		f.mu.Lock()
		f.histories = append(f.histories, h)
		f.mu.Unlock()
		left -= int64(count([]history{h}, admitted, denied))
		if life == kills {
			return nil
		}
	}
}

// live runs a replica to its end, or until it is to be killed.
func (f *fleet) live(ctx context.Context, j job, kill func(event) bool) error {
	p, err := startReplica(ctx, j)
	if err != nil {
		return err
	}
	go p.direct(ctx, f.calm, f.stop)
	last, killed, err := p.follow(kill)
	if err != nil {
		return fmt.Errorf("replica %s: %w", j.Replica, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads += last.Reads
	if killed {
		f.killed++
	}
	if last.Stats != nil {
		f.stats = sum(f.stats, *last.Stats)
	}
	return nil
}

func sum(a, b dynamo.Stats) dynamo.Stats {
	return dynamo.Stats{
		Writes: a.Writes + b.Writes, Refused: a.Refused + b.Refused, Resent: a.Resent + b.Resent,
		Reads: a.Reads + b.Reads, Lost: a.Lost + b.Lost, Owed: a.Owed + b.Owed, Halts: a.Halts + b.Halts, Lanes: a.Lanes + b.Lanes,
		Splits: a.Splits + b.Splits, Merges: a.Merges + b.Merges,
	}
}
