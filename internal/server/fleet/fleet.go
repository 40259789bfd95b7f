package fleet

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/admin/controlapi"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Config configures a [Fleet]. Now, Decided, Health and Events must be set.
type Config struct {
	Host, Version string
	Started       time.Time
	Now           func() time.Time
	Decided       func() map[string]int64 // descriptors since the start, by result
	Health        func() admin.State
	Events        *Events
	Tops          map[string]*controlapi.TopCounter // by api.TopDenied and so on
	Leases        func() int64                      // held now; nil = none
	Memory        func() int64                      // bytes of the process; nil = not known
	Reports       limiter.Reports                   // of all replicas; nil = there are no others
	Aggregators   Aggregators                       // of the store; nil = it has no reports of them
	Counts        bool                              // the store counts usage by itself: its aggregators archive audit events
	Usage         bool                              // the store keeps usage
	Budgets       func() bool                       // the configuration in force has budgets; nil = it has none
	Logger        *slog.Logger                      // nil = none
}

// Fleet answers for all replicas. It is safe for concurrent use. Create it with [New].
type Fleet struct {
	cfg         Config
	id          string
	decided     *recorder
	others      *others
	aggregators *aggregators
}

// report is what one replica tells of itself.
type report struct {
	replica api.Replica
	series  window
	events  []api.Event // the newest first
	tops    map[string][]controlapi.TopRow
	stopped bool // the process ends
}

// isLive reports whether the replica of a report is shown.
func (r *report) isLive(now time.Time) bool { return !r.stopped && now.Sub(r.replica.Seen) < Live }

// New returns the fleet of this process. It makes no call.
func New(cfg Config) *Fleet {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	id := newID()
	return &Fleet{cfg: cfg, id: id, decided: newRecorder(cfg.Now(), cfg.Decided), others: newOthers(&cfg, id), aggregators: newAggregators(&cfg)}
}

// newID returns a random id of 8 hexadecimal digits.
func newID() string {
	var id [4]byte
	_, _ = rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// ID returns the id of this process.
func (f *Fleet) ID() string { return f.id }

// self returns the report of this process, without the limits with the most decisions.
func (f *Fleet) self(now time.Time, events int) report {
	series, total := f.decided.read(now)
	state := f.cfg.Health()
	r := api.Replica{
		ID: f.id, Host: f.cfg.Host, Version: f.cfg.Version, Started: f.cfg.Started.UTC().Truncate(time.Millisecond), Seen: now.UTC().Truncate(time.Millisecond),
		Ready: state.Ready, Reason: state.Reason, Configuration: configurationOf(&state.Config), Store: storeOf(state.Store), Decisions: total,
	}
	if f.cfg.Leases != nil {
		r.Leases = f.cfg.Leases()
	}
	if f.cfg.Memory != nil {
		r.MemoryBytes = f.cfg.Memory()
	}
	return report{replica: r, series: series, events: f.cfg.Events.last(events, now, f.id)}
}

func configurationOf(c *admin.ConfigState) api.Configuration {
	return api.Configuration{Hash: c.Hash, LoadedAt: c.LoadedAt.UTC(), Error: c.Error, ErrorAt: c.ErrorAt.UTC()}
}

func storeOf(s *admin.StoreState) *api.StoreState {
	if s == nil {
		return nil
	}
	return &api.StoreState{Type: s.Type, State: s.State, Since: s.Since, Policy: s.Policy, Cause: s.Cause}
}

// State implements controlapi.Fleet.
func (f *Fleet) State(ctx context.Context) *api.Fleet {
	var reading sync.WaitGroup // both reads take the time of one
	reading.Go(func() { f.aggregators.read(ctx) })
	others := f.others.list(ctx)
	reading.Wait()
	now := f.cfg.Now()
	here := f.self(now, maxEvents)
	here.replica.Here = true
	all := join(now, &here, others)
	all.Aggregator = f.aggregators.state(all)
	return all
}

// Top implements controlapi.Fleet. It adds the rows of this process to those that the others have reported.
func (f *Fleet) Top(ctx context.Context, by string, n int, filter controlapi.TopFilter) []controlapi.TopRow {
	counter := f.cfg.Tops[by]
	if counter == nil {
		return nil
	}
	others := f.others.list(ctx)
	now := f.cfg.Now()
	all := counter.Top(now, math.MaxInt, filter)
	for i := range others {
		if !others[i].isLive(now) {
			continue
		}
		for _, row := range others[i].tops[by] {
			if filter.Picks(&row.TopKey) {
				all = append(all, row)
			}
		}
	}
	return controlapi.AddUp(all, n)
}
