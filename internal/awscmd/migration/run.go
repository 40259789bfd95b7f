package migration

import (
	"context"
	"fmt"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Target is the store that a set is written to.
type Target interface {
	Read(ctx context.Context, namespace string, refs []limiter.Ref, records []limiter.Record) (generation uint64, err error)
	Take(ctx context.Context, now time.Time, ops []limiter.Op) (admitted bool, err error)
	limiter.Editor
	limiter.Directory
}

// Options configure a [Run]. Now is required.
type Options struct {
	DryRun    bool // compare, and change nothing
	Overwrite bool // replace records of the store that differ from the set
	Balances  bool // lower balances
	Now       func() time.Time
	Progress  func(Tally) // called after each batch of records or balances; nil = not called
}

// Tally counts the changes of a run; of a dry run, those that it would make.
type Tally struct {
	Done, Of int // records and balances

	Made     int // records that the store did not have
	Same     int // records that the store has already
	Replaced int // records of the store that differed, with Options.Overwrite
	Kept     int // the same, without

	Lowered  int // balances that were too high; not counted by a dry run
	Enough   int // balances that were as low already
	Unplaced int // balances with limits that are not stored
}

// Outcome is the outcome of a run.
type Outcome struct {
	Tally
	Differ []limiter.Ref // records that the store has in another form, at most MaxDiffer
}

// MaxDiffer is the greatest number of differing records that an [Outcome] names.
const MaxDiffer = 1000

// batch is how many records one read compares, and how often progress is reported.
const batch = 100

// run is a run on its way.
type run struct {
	to  Target
	o   Options
	out Outcome
}

// Run writes a checked set to a store. It may end at any point, and be made again: records
// that are there and balances that are low enough stay as they are. Errors are those of the
// store, and the outcome counts the changes before it.
func Run(ctx context.Context, to Target, set *Set, o Options) (Outcome, error) {
	r := &run{to: to, o: o}
	for i := range set.Namespaces {
		r.out.Of += len(set.Namespaces[i].Records)
		if o.Balances {
			r.out.Of += len(set.Namespaces[i].Balances)
		}
	}
	for i := range set.Namespaces {
		ns := &set.Namespaces[i]
		err := r.records(ctx, ns)
		if err == nil && o.Balances {
			err = r.balances(ctx, ns)
		}
		if err != nil {
			return r.out, fmt.Errorf("namespace %.100q: %w", ns.Name, err)
		}
	}
	return r.out, nil
}

// told counts n more records or balances, and reports the progress.
func (r *run) told(n int) {
	r.out.Done += n
	if r.o.Progress != nil {
		r.o.Progress(r.out.Tally)
	}
}
