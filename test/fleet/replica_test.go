package fleet_test

import (
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/clocktest"
)

// jobVariable holds the job of a process that is a replica.
const jobVariable = "RATELIMIT_FLEET_JOB"

// job is the work of a replica.
type job struct {
	Work      string        `json:"work"` // load, history, limits, files
	Replica   string        `json:"replica"`
	Endpoint  string        `json:"endpoint"`
	Table     string        `json:"table"`
	History   string        `json:"history"` // path of the file that it writes
	Seed      uint64        `json:"seed"`
	Skew      time.Duration `json:"skew"`     // of its clock, before any correction
	Patience  time.Duration `json:"patience"` // for the whole job
	Decisions int64         `json:"decisions"`
	Load      string        `json:"load"` // its load, by name
	Defect    string        `json:"defect"`
	Files     []int         `json:"files"` // for files: which are in force, in turns
	Units     int64         `json:"units"` // a second, that a shard is good for
	Quiet     time.Duration `json:"quiet"` // before shards are merged
}

// event is a line that a replica writes to its standard output.
type event struct {
	Decided int64         // so far
	Reads   int64         // of the catalog, that were complete
	Turns   int64         // from one file's limits to another's, of the entity with the fewest
	Stats   *dynamo.Stats // set at the end
}

const (
	attempt = 300 * time.Millisecond
	budget  = time.Second
	// sharpClock is the error bound of a replica's clock before it decides anything,
	// if it can.
	sharpClock = 60 * time.Millisecond
)

// replica is a process of the fleet.
type replica struct {
	job
	store *dynamo.Store
	clock *dynamo.Clock
	load  load
	out   *gob.Encoder
	outMu sync.Mutex

	recorder *recorder
	calm     atomic.Bool // the busy callers have ended
	claimed  atomic.Int64
	decided  atomic.Int64
	reads    atomic.Int64
	turns    turns
}

// work does the job of a replica and returns the exit status of its process. It ends
// early when its input does: then its parent process has ended.
func work(description string) int {
	var j job
	if err := json.Unmarshal([]byte(description), &j); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	ctx, cancel := context.WithTimeout(context.Background(), j.Patience)
	defer cancel()
	r := &replica{job: j, out: gob.NewEncoder(os.Stdout)}
	go func() { // ends with its input, at the latest with the process
		r.heed(os.Stdin)
		cancel()
	}()
	if err := r.run(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "replica %s: %v\n", j.Replica, err)
		return 1
	}
	return 0
}

// heed ends the busy callers at the first byte of its input, and returns at its end.
func (r *replica) heed(in io.Reader) {
	b := make([]byte, 1)
	for {
		n, err := in.Read(b)
		if n > 0 {
			r.calm.Store(true)
		}
		if err != nil {
			return
		}
	}
}

// now is the replica's clock.
func (r *replica) now() time.Time { return time.Now().Add(r.Skew) }

// ahead is how far the replica's corrected clock is ahead, in microseconds.
func (r *replica) ahead() int64 { return (r.Skew + r.clock.State().Offset).Microseconds() }

// setClock asks for as many replies as it takes to know the time. The longer that
// takes, on a machine whose round trips are long, the less exactly it has to be known:
// the difference of the clocks is measured, and the bound includes it.
func (r *replica) setClock(ctx context.Context) error {
	refs := catalogRefs()
	records := make([]limiter.Record, len(refs))
	start := time.Now()
	for {
		if s := r.clock.State(); s.Observed && s.Uncertainty <= sharpClock+time.Since(start)/20 {
			return nil
		}
		if _, err := r.store.Read(ctx, limiter.DefaultNamespace, refs, records); err != nil && ctx.Err() != nil {
			return fmt.Errorf("the clock is not known: %+v: %w", r.clock.State(), err)
		}
		clocktest.Pause(ctx, 2*time.Millisecond)
	}
}

// run opens the store, learns the time and does the work.
func (r *replica) run(ctx context.Context) (err error) {
	var client dynamo.Client
	r.clock = dynamo.NewClock(r.now, 0).WithMaxOffset(24 * time.Hour) // their clocks are hours off
	if client, err = dynamo.NewClient(ctx, dynamo.ClientConfig{Endpoint: r.Endpoint, Clock: r.clock}); err != nil {
		return err
	}
	if client, err = defectOf(r.Defect, client); err != nil {
		return err
	}
	//nolint:contextcheck // the store's own work outlives the call
	if r.store, err = dynamo.New(client, dynamo.Config{Table: r.Table, Attempt: attempt, Budget: budget, ShardUnits: r.Units, Quiet: r.Quiet, Now: r.now, Clock: r.clock}); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, r.store.Close(context.WithoutCancel(ctx)), r.say(event{Stats: new(r.store.Stats())}))
	}()
	if err := r.setClock(ctx); err != nil {
		return err
	}
	switch r.Work {
	case "load":
		return r.bear(ctx)
	case "history":
		return r.chronicle(ctx)
	case "limits":
		return r.oblige(ctx, nil)
	case "files":
		return r.oblige(ctx, r.changeFiles)
	default:
		return fmt.Errorf("there is no work %q", r.Work)
	}
}

// say reports the state of the process to its parent.
func (r *replica) say(e event) error {
	r.outMu.Lock()
	defer r.outMu.Unlock()
	e.Decided, e.Reads, e.Turns = r.decided.Load(), r.reads.Load(), r.turns.fewest()
	return r.out.Encode(e)
}

// bear makes the replica's share of the decisions of a load.
func (r *replica) bear(ctx context.Context) (err error) {
	if r.load, err = loadOf(r.Load); err != nil {
		return err
	}
	if r.recorder, err = newRecorder(r.History); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.recorder.close()) }()
	reading, stop := context.WithCancel(ctx)
	defer stop()
	var readers, callers errgroup.Group
	readers.Go(func() error { return r.readCatalog(reading) })
	for i, c := range r.load.calls {
		for caller := range c.callers {
			rnd := rand.New(rand.NewPCG(r.Seed, uint64(i)<<16+uint64(caller)))
			callers.Go(func() error { return r.call(ctx, rnd, i) })
		}
	}
	err = callers.Wait()
	stop()
	return errors.Join(err, readers.Wait())
}

// call is one caller: it asks until the replica has made its share, or its time is over.
func (r *replica) call(ctx context.Context, rnd *rand.Rand, kind int) error {
	c := &r.load.calls[kind]
	for r.claimed.Add(1) <= r.Decisions && (!c.busy || !r.calm.Load()) {
		err := r.decide(ctx, rnd, kind)
		if err == nil && c.pace > 0 && !clocktest.Pause(ctx, time.Duration(rnd.Int64N(int64(c.pace)))) {
			err = ctx.Err()
		}
		switch {
		case r.load.endless && errors.Is(ctx.Err(), context.Canceled):
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}

// decide asks until it gets a decision.
func (r *replica) decide(ctx context.Context, rnd *rand.Rand, kind int) error {
	c := &r.load.calls[kind]
	rec := record{Call: uint16(kind), Amount: 1 + rnd.Int64N(c.most)}
	ops := r.load.ops(c, rec.Amount)
	for {
		err := r.take(ctx, ops, &rec)
		r.recorder.add(rec)
		switch {
		case err == nil:
			if n := r.decided.Add(1); n%1000 == 0 {
				return r.say(event{})
			}
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("after %d of %d decisions: %w", r.decided.Load(), r.Decisions, err)
		case errors.Is(err, limiter.ErrUnavailable), errors.Is(err, limiter.ErrUncertain):
			if !clocktest.Pause(ctx, 50*time.Millisecond+time.Duration(rnd.Int64N(int64(100*time.Millisecond)))) {
				return ctx.Err()
			}
		default:
			return err
		}
	}
}

// take takes, and fills in its record.
func (r *replica) take(ctx context.Context, ops []limiter.Op, rec *record) error {
	rec.From = time.Now().UnixMicro()
	before := r.ahead()
	ok, err := r.store.Take(ctx, r.now(), ops)
	rec.Took = time.Now().UnixMicro() + 1 - rec.From // rounded up
	after := r.ahead()
	rec.Slow, rec.Fast = min(before, after), max(before, after)
	switch {
	case err != nil && errors.Is(err, limiter.ErrUncertain):
		rec.Outcome = uncertain
	case err != nil:
		rec.Outcome = unavailable
	case ok:
		rec.Outcome = admitted
	default:
		rec.Outcome = denied
	}
	return err
}

// readCatalog reads the limits of resources in batches until ctx ends. Each must be
// there: limits that a batch answered in part leaves out must not count as absent.
func (r *replica) readCatalog(ctx context.Context) error {
	refs := catalogRefs()
	records := make([]limiter.Record, len(refs))
	for clocktest.Pause(ctx, 20*time.Millisecond) {
		_, err := r.store.Read(ctx, limiter.DefaultNamespace, refs, records)
		switch {
		case errors.Is(err, limiter.ErrUnavailable), errors.Is(err, limiter.ErrUncertain):
			continue
		case err != nil:
			return err
		}
		for i, rec := range records {
			if rec.Limits.Len() == 0 {
				return fmt.Errorf("the limits of %+v were read as missing", refs[i])
			}
		}
		r.reads.Add(1)
	}
	return nil
}

// catalogRefs are limits that are stored before the replicas start.
func catalogRefs() []limiter.Ref {
	refs := make([]limiter.Ref, 8)
	for i := range refs {
		refs[i] = limiter.ResourceLimitsRef(fmt.Sprint("model/", i))
	}
	return refs
}
