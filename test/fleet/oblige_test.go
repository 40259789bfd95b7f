package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/clocktest"
)

// Names of the works of replicas while limits change. Each entity has a parent that
// has both limits, more than enough of them, so that a limit may be taken from the
// entity alone.
const (
	obligedResource = "model"
	obligedParent   = "fleet"
)

// The bits of record.Held.
const (
	heldRPS   = 1 << 0
	heldExtra = 1 << 1
)

// obligedEntities are the entities, in the order of record.Call.
func obligedEntities() []string { return []string{"lowered", "raised", "added", "removed"} }

// plenty are the limits of the parent.
func plenty() (*limiter.Limits, error) {
	return limiter.NewLimits(limiter.PerSecond("rps", 1_000_000), limiter.PerSecond("extra", 1_000_000))
}

// oblige asks a limiter for one token of both limits of each entity, again and again
// until ctx ends, and does something else meanwhile.
func (r *replica) oblige(ctx context.Context, meanwhile func(context.Context, *limiter.Limiter) error) (err error) {
	l, err := limiter.New(limiter.Config{Store: r.store, Timeout: budget})
	if err != nil {
		return err
	}
	defer l.Close()
	if r.recorder, err = newRecorder(r.History); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.recorder.close()) }()
	var g errgroup.Group
	if meanwhile != nil {
		g.Go(func() error { return meanwhile(ctx, l) })
	}
	for i, entity := range obligedEntities() {
		for range 3 {
			g.Go(func() error { return r.ask(ctx, l, uint16(i), entity) })
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("it was not stopped in %v", r.Patience)
	}
	return nil
}

// ask is one caller, which asks two hundred times a second at the most.
func (r *replica) ask(ctx context.Context, l *limiter.Limiter, call uint16, entity string) error {
	req := limiter.Request{OnUnavailable: limiter.Deny, Takes: []limiter.Take{{
		Entity: entity, Resource: obligedResource, Parents: []string{obligedParent},
		Consume: []limiter.Consumption{{Limit: "rps", Amount: token}, {Limit: "extra", Amount: token}},
	}}}
	var d limiter.Decision
	for clocktest.Pause(ctx, 5*time.Millisecond) {
		rec := record{Call: call, Amount: 1, From: time.Now().UnixMicro()}
		before := r.ahead()
		if err := l.Decide(ctx, r.now(), &req, &d); err != nil {
			return err
		}
		rec.Took = time.Now().UnixMicro() + 1 - rec.From
		after := r.ahead() // the reply can have corrected the clock
		rec.Slow, rec.Fast = min(before, after), max(before, after)
		switch {
		case d.Policy != limiter.Unset, d.Late: // not by the table, or by an estimate
			rec.Outcome = unavailable
		case d.Admitted:
			rec.Outcome = admitted
		default:
			rec.Outcome = denied
		}
		for _, s := range d.Statuses {
			switch {
			case s.Level == 0 && s.Limit.Name == "rps":
				rec.Held |= heldRPS
				rec.Under = s.Limit.Capacity
			case s.Level == 0 && s.Limit.Name == "extra":
				rec.Held |= heldExtra
			}
		}
		r.recorder.add(rec)
		if rec.Outcome != unavailable {
			r.turns.see(rec)
		}
		if n := r.decided.Add(1); n%50 == 0 {
			if err := r.say(event{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// turns counts how often a replica's decisions went over from one file's limits to
// another's, for the entities whose limits the files disagree about.
type turns struct {
	mu   sync.Mutex
	last [2]record
	n    [2]int64
}

// see counts the decision on one of the entities.
func (t *turns) see(r record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := int(r.Call) / 2
	if r.Call%2 != 0 {
		return
	}
	if last := t.last[i]; last.Under != 0 && (last.Under != r.Under || last.Held != r.Held) {
		t.n[i]++
	}
	t.last[i] = r
}

func (t *turns) fewest() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return min(t.n[0], t.n[1])
}

// fileOf returns a configuration file's limits: the files disagree in a number of the
// first entity, and in whether the third has a limit at all.
func fileOf(i int) (*limiter.Snapshot, error) {
	full, err := plenty()
	if err != nil {
		return nil, err
	}
	first, err := limiter.NewLimits([...]limiter.Limit{limiter.PerSecond("rps", 20), limiter.PerSecond("rps", 40)}[i])
	if err != nil {
		return nil, err
	}
	third, err := limiter.NewLimits([...][]limiter.Limit{
		{limiter.PerSecond("rps", 500), limiter.Custom("extra", 50, 1, time.Second)}, {limiter.PerSecond("rps", 400)},
	}[i]...)
	if err != nil {
		return nil, err
	}
	of := func(l *limiter.Limits) limiter.StaticEntity {
		return limiter.StaticEntity{Limits: map[string]*limiter.Limits{obligedResource: l}}
	}
	names := obligedEntities()
	return limiter.NewSnapshot(limiter.Static{Entities: map[string]limiter.StaticEntity{obligedParent: of(full), names[0]: of(first), names[2]: of(third)}})
}

// changeFiles puts the replica's files in force, in turns.
func (r *replica) changeFiles(ctx context.Context, l *limiter.Limiter) error {
	for i := 0; ; i++ {
		snapshot, err := fileOf(r.Files[i%len(r.Files)])
		if err != nil {
			return err
		}
		if err := l.Use(ctx, snapshot); err != nil && ctx.Err() == nil {
			return err
		}
		if !clocktest.Pause(ctx, 250*time.Millisecond) {
			return nil
		}
	}
}
