package fleet_test

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
	"github.com/ratelimit/ratelimit/test/kit/clocktest"
)

// entry is one decision on the bucket of a chronicle, with all that was answered.
type entry struct {
	Client       int
	From, To     int64 // nanoseconds since 1970, of the call
	Take, Refund int64
	Outcome      outcome
	Bucket       tokenbucket.Bucket // as the answer has it; zero for an unknown outcome
	// Vague says that a reply was lost during the call, or took longer than an attempt. A
	// caller whose write is found to be applied later gets the balance of that moment.
	Vague bool
	// Beside is the sum of the requests of the replica's other calls meanwhile, of a
	// denied one.
	Beside int64
	// ByShare says that the replica's part of the tokens was too little.
	ByShare bool
}

// chronicleCallers is how many callers a replica has that keeps a chronicle.
const chronicleCallers = 4

// chronicleLimit is the limit of the bucket. It is taken from faster than it refills, and
// not full again after the beginning, however slowly the replicas start.
func chronicleLimit(name string) (limiter.Limit, error) {
	const never = 366 * 24 * time.Hour // for a token: less than a millitoken in eight hours
	switch name {
	case "taken":
		return limiter.Custom("l", 8000, 1, never), nil
	case "taken and given back":
		return limiter.Custom("l", 100, 1, never), nil
	case "refilled":
		return limiter.Custom("l", 20_000, 330, 1100*time.Millisecond), nil
	default:
		return limiter.Limit{}, fmt.Errorf("there is no chronicle %q", name)
	}
}

// chronicleOp is an op on the bucket of a chronicle.
func chronicleOp(limits *limiter.Limits) limiter.Op {
	return limiter.Op{Bucket: limiter.BucketKey{Namespace: limiter.DefaultNamespace, Entity: "chronicle", Resource: "model"}, Limits: limits, Generation: 1}
}

// chronicle makes the replica's share of the calls on one bucket, and writes down
// each with its answer.
func (r *replica) chronicle(ctx context.Context) error {
	limit, err := chronicleLimit(r.Load)
	if err != nil {
		return err
	}
	limits, err := limiter.NewLimits(limit)
	if err != nil {
		return err
	}
	op := chronicleOp(limits)
	var mu sync.Mutex
	c := chronicler{r: r, op: op, limit: limit.Name}
	e, err := c.alone(ctx)
	if err != nil {
		return err
	}
	all := []entry{e}
	var g errgroup.Group
	for caller := range chronicleCallers {
		c := chronicler{r: r, op: op, limit: limit.Name, rnd: rand.New(rand.NewPCG(r.Seed, uint64(caller))), refunds: r.Load == "taken and given back"}
		g.Go(func() error {
			for range r.Decisions / chronicleCallers {
				e, err := c.call(ctx, c.next())
				if err != nil {
					return err
				}
				e.Client = caller
				mu.Lock()
				all = append(all, e)
				mu.Unlock()
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return writeChronicle(r.History, all)
}

// chronicler is a caller that takes, and refunds a part of its takes.
type chronicler struct {
	r       *replica
	op      limiter.Op
	limit   string
	rnd     *rand.Rand
	refunds bool
	got     int64
}

// alone makes a first call while no other replica makes its first one. So it sees the slots
// of the others and takes a free one: two replicas in one slot may take a repeated write
// twice.
func (c *chronicler) alone(ctx context.Context) (e entry, err error) {
	turn, err := os.Create(filepath.Join(filepath.Dir(c.r.History), "turn"))
	if err != nil {
		return e, err
	}
	defer func() { err = errors.Join(err, turn.Close()) }()
	if err := syscall.Flock(int(turn.Fd()), syscall.LOCK_EX); err != nil { // #nosec G115 -- a descriptor
		return e, err
	}
	return c.call(ctx, entry{Take: token})
}

// next returns the next call that it makes.
func (c *chronicler) next() entry {
	e := entry{Take: 1 + c.rnd.Int64N(8*token)}
	if c.refunds && c.got > 0 && c.rnd.IntN(2) == 0 {
		e.Take, e.Refund = 0, 1+c.rnd.Int64N(c.got)
		c.got -= e.Refund // for good: one of unknown outcome may be applied
	}
	return e
}

// call makes a call, and returns it with its answer.
func (c *chronicler) call(ctx context.Context, e entry) (entry, error) {
	op := c.op
	op.Spends = []limiter.Spend{{Limit: c.limit, Take: e.Take, Refund: e.Refund}}
	ops := []limiter.Op{op}
	e.From = time.Now().UnixNano()
	ok, err := c.r.store.Take(ctx, c.r.now(), ops)
	e.To = time.Now().UnixNano()
	switch {
	case errors.Is(err, limiter.ErrUncertain):
		e.Outcome = uncertain
	case errors.Is(err, limiter.ErrUnavailable):
		e.Outcome = unavailable
		clocktest.Pause(ctx, 20*time.Millisecond)
	case err != nil:
		return e, err
	case ok:
		e.Outcome = admitted
		c.got += e.Take
	default:
		e.Outcome = denied
	}
	e.Bucket, e.ByShare = ops[0].Spends[0].Bucket, ops[0].ByShare
	return e, nil
}

func writeChronicle(path string, all []entry) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return gob.NewEncoder(f).Encode(all)
}

func readChronicle(path string) (all []entry, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return all, gob.NewDecoder(f).Decode(&all)
}
