package comparison_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

const tableName = "buckets"

// The modes that are compared.
const (
	modeOneWrite    = "one write each"
	modeGroupCommit = "lease: none"
	modeLeases      = "lease: auto"
)

// modesOf returns the modes that are measured under a scenario. One write each is a
// limiter for one bucket and tokens of one, and ten replicas of it take long to measure.
func modesOf(sc *scenario) []string {
	if sc.replicas > 3 || len(sc.keys) > 0 || sc.most > 0 || sc.name > "J" {
		return []string{modeGroupCommit, modeLeases}
	}
	return []string{modeOneWrite, modeGroupCommit, modeLeases}
}

// answer is how a call ends for a client.
type answer struct{ admitted, late, policy bool }

// take asks a replica for tokens of a key.
type take func(ctx context.Context, key int, amount int64) (answer, error)

// fleet is the replicas of a run. Each has a client of its own.
type fleet struct {
	db       *dynamofake.DB
	networks []*network
	takes    []take
	members  []*member // none with one write each
	writes   *tally
}

// member is a replica: a limiter over a store of its own, as the service has it.
type member struct {
	limiter *limiter.Limiter
	store   *dynamo.Store
	closed  bool
}

// stop ends a replica cleanly, unless it was.
func (r *member) stop(ctx context.Context) error {
	if r.closed {
		return nil
	}
	r.closed = true
	r.limiter.Close()
	return r.store.Close(context.WithoutCancel(ctx))
}

// close ends the replicas cleanly.
func (f *fleet) close(t *testing.T) {
	t.Helper()
	for _, r := range f.members {
		if err := r.stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// newFleet starts the replicas of a scenario, as far as a service does before it is ready.
func newFleet(t *testing.T, sc *scenario, mode string) *fleet {
	t.Helper()
	db := dynamofake.New()
	if _, err := db.CreateTable(t.Context(), dynamo.TableInput(tableName)); err != nil {
		t.Fatal(err)
	}
	f := &fleet{db: db, writes: newTally()}
	for i := range sc.replicas {
		n := &network{Client: db, r: rand.New(rand.NewPCG(seed, uint64(i))), median: sc.latency, tally: f.writes}
		if n.median == 0 {
			n.median = medianLatency
		}
		f.networks = append(f.networks, n)
	}
	if mode == modeOneWrite {
		f.writeOnce(t, sc)
	} else {
		f.useLimiters(t, sc, mode)
	}
	f.writes.reset()
	for _, n := range f.networks {
		n.warm = time.Now().Add(sc.warms)
	}
	return f
}

// writeOnce has every replica write once for each decision. One without an answer in time
// is made by the policy.
func (f *fleet) writeOnce(t *testing.T, sc *scenario) {
	t.Helper()
	for i, n := range f.networks {
		o := &oneWrite{client: n, params: sc.limit.Params()}
		if i == 0 {
			if err := o.create(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		f.takes = append(f.takes, func(ctx context.Context, _ int, _ int64) (answer, error) {
			ctx, cancel := context.WithTimeout(ctx, limiter.DefaultTimeout)
			defer cancel()
			ok, err := o.take(ctx)
			return answer{admitted: ok || err != nil, policy: err != nil}, nil
		})
	}
}

// useLimiters has every replica decide as the service does: a limiter with its defaults,
// over a store of its own. Buckets are not split, unless the scenario says so: the load of
// one item is compared.
func (f *fleet) useLimiters(t *testing.T, sc *scenario, mode string) {
	t.Helper()
	static := staticOf(t, sc, sc.limit)
	if sc.flies {
		static = staticOf(t, sc, limiter.Concurrent(sc.limit.Name, sc.limit.Capacity, limiter.MaxInFlight))
	}
	units := sc.units
	if units == 0 {
		units = 1 << 40
	}
	for _, n := range f.networks {
		s, err := dynamo.New(n, dynamo.Config{Table: tableName, ShardUnits: units, Leases: true, Logger: sc.logger})
		if err != nil {
			t.Fatal(err)
		}
		l, err := limiter.New(limiter.Config{Store: s})
		if err == nil {
			_, err = s.Read(t.Context(), limiter.DefaultNamespace, nil, nil) // opens the namespace
		}
		if err == nil {
			err = l.SetStatic(t.Context(), static)
		}
		if err != nil {
			t.Fatal(err)
		}
		f.takes = append(f.takes, decideBy(l, limiter.LeasePolicy{None: mode == modeGroupCommit}))
		f.members = append(f.members, &member{limiter: l, store: s})
	}
}

// The names of a run.
const (
	resource = "r"
	parent   = "org"
)

func keyName(i int) string { return fmt.Sprint("key/", i) }

// staticOf returns the limits of a scenario as a configuration file gives them, with its
// limit in place of the scenario's.
func staticOf(t *testing.T, sc *scenario, limit limiter.Limit) limiter.Static {
	t.Helper()
	limits := func(l limiter.Limit) map[string]*limiter.Limits {
		set, err := limiter.NewLimits(l)
		if err != nil {
			t.Fatal(err)
		}
		return map[string]*limiter.Limits{resource: set}
	}
	entities := map[string]limiter.StaticEntity{keyName(0): {Limits: limits(limit)}}
	for i := range sc.keys {
		entities[keyName(i)] = limiter.StaticEntity{Parent: parent, Cascade: true, Limits: limits(sc.own)}
		entities[parent] = limiter.StaticEntity{Limits: limits(limit)}
	}
	return limiter.Static{Entities: entities}
}

// decideBy asks a limiter.
func decideBy(l *limiter.Limiter, lease limiter.LeasePolicy) take {
	return func(ctx context.Context, key int, amount int64) (answer, error) {
		req := limiter.Request{Takes: []limiter.Take{{
			Entity: keyName(key), Resource: resource, Lease: lease, Consume: []limiter.Consumption{{Limit: "l", Amount: amount}},
		}}}
		var d limiter.Decision
		err := l.Decide(ctx, time.Now(), &req, &d)
		return answer{admitted: d.Admitted, late: d.Late, policy: d.Policy != limiter.Unset}, err
	}
}
