package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// adjustment is one that is under way. It belongs to one goroutine.
type adjustment struct {
	*Balances
	*limiter.Adjustment

	ns    schema.Namespace
	now   time.Time // the caller's, when it began
	began time.Time // the same by the machine's clock
	wish  wish
	tries int
	lost  int           // commits that other changes came before
	turns uint64        // so far
	took  time.Duration // the last write
	first string        // the text of the record of its Once, if there is one
	from  Observer      // when it began: an image is of the same history of the server
}

// turnAfter is after how many commits that other changes came before an adjustment asks for turns.
const turnAfter = 2

func newAdjustment(b *Balances, ns schema.Namespace, now time.Time, a *limiter.Adjustment) *adjustment {
	return &adjustment{Balances: b, Adjustment: a, ns: ns, now: now, began: b.cfg.Now(), wish: newWish(b.cfg.Loop), from: b.cfg.Engine()}
}

// at returns the time of the buckets: the caller's, and the time that leases were waited for.
func (t *adjustment) at() int64 {
	if t.wish.since == 0 {
		return t.time(t.now)
	}
	return t.time(t.now.Add(t.passed()))
}

// passed returns how long the adjustment is under way.
func (t *adjustment) passed() time.Duration { return t.cfg.Now().Sub(t.began) }

// run makes the adjustment: it is planned anew for as long as other changes come between.
func (t *adjustment) run(ctx context.Context) (limiter.Adjusted, error) {
	for {
		items, err := t.cfg.Buckets.Read(ctx, t.ns.ID, t.Bucket)
		if err == nil && t.wish.since == 0 {
			err = t.unmade(ctx)
		}
		if err != nil && !errors.Is(err, errMade) || items[0] == nil {
			return t.none(err)
		}
		leaves, settled := schema.Leaves(items)
		if errors.Is(err, errMade) {
			return t.repeated(leaves), nil
		}
		if err == nil && !settled {
			err = plan.ErrShard
		}
		var changes []*plan.Adjusted
		if err == nil {
			changes, err = plan.Adjust(leaves, t.at(), t.Adjustment, t.wish.replica, t.DryRun || t.wish.over(t.passed()))
		}
		switch {
		case errors.Is(err, plan.ErrLent):
			err = t.recall(ctx, leaves)
		case errors.Is(err, plan.ErrShard):
			err = t.tend(ctx, items)
		case err == nil:
			out, done, failed := t.finish(ctx, changes)
			if done || failed != nil {
				return out, failed
			}
			err = t.again(ctx, leaves)
		}
		if err != nil {
			return limiter.Adjusted{}, err
		}
	}
}

// again prepares another commit after one that other changes came before: by turns in place of a pause
// each second time, so that two adjustments do not take each other's turns for ever.
func (t *adjustment) again(ctx context.Context, leaves []*schema.Bucket) error {
	t.lost++
	if t.lost%turnAfter != 0 {
		return t.pause(ctx)
	}
	for _, b := range leaves {
		t.turn(ctx, b)
	}
	if ctx.Err() != nil {
		return t.pause(ctx)
	}
	return nil
}

// pause waits before another try.
func (t *adjustment) pause(ctx context.Context) error {
	t.tries++
	if awsdb.Pause(ctx, t.cfg.Loop, t.tries) != nil {
		return fmt.Errorf("%w: other changes of the bucket came before this one for %v; make it again", limiter.ErrUnavailable, t.passed().Round(time.Millisecond))
	}
	return nil
}

// finish commits the changes, unless there is nothing to commit.
func (t *adjustment) finish(ctx context.Context, changes []*plan.Adjusted) (out limiter.Adjusted, done bool, err error) {
	before, after := make([]*schema.Bucket, len(changes)), make([]*schema.Bucket, len(changes))
	for i, w := range changes {
		before[i], after[i] = w.Before(), w.After()
	}
	at := changes[0].Now()
	out = limiter.Adjusted{Found: true, Before: stateOf(t.Bucket, before, at), After: stateOf(t.Bucket, after, at)}
	out.Booked = t.Booked(&out.Before, &out.After)
	if t.Unfit(out.Booked) {
		out.After = out.Before
		return out, true, nil
	}
	if t.DryRun {
		return out, true, nil
	}
	done, err = t.commit(ctx, changes, &out)
	return out, done, err
}

// commit applies the changes together with the audit event and the record of the key. It
// reports false where another change of the bucket came between.
func (t *adjustment) commit(ctx context.Context, changes []*plan.Adjusted, out *limiter.Adjusted) (done bool, err error) {
	writes := make([]*schema.ItemWrite, 0, len(changes)+1)
	for _, w := range changes {
		writes = append(writes, w.Update(t.key(w.Before().Shard.Index)))
	}
	once := len(writes)
	if t.Once != "" {
		writes = append(writes, schema.PutOnce(schema.OnceKey(t.ns.ID, t.Once), t.wall(), t.OnceRecord(out.Booked)))
	}
	var event limiter.AuditEvent
	if !t.Follows {
		event = limiter.AuditEvent{Action: t.Kind.Action(), Subject: limiter.EntityLimitsRef(t.Bucket.Entity, t.Bucket.Resource), Detail: t.Detail(out)}
	}
	refused, err := t.cfg.Buckets.Commit(ctx, t.Bucket.Namespace, event, writes, t.unmade)
	if err == nil && len(refused) > once && refused[once] {
		err = t.unmade(ctx)
	}
	switch {
	case errors.Is(err, errMade):
		*out = limiter.Adjusted{Found: true, Repeated: true, Before: out.Before, After: out.Before, First: t.FirstOf(t.first)}
		return true, nil
	case err != nil:
		return false, err
	case slices.Contains(refused, true):
		return false, nil
	}
	for _, w := range changes {
		t.cfg.Engine().Changed(t.ns.ID, t.Bucket, w.Before().Shard.Index)
		if w.Before().Lease(t.wish.replica) != nil && w.After().Lease(t.wish.replica) == nil {
			delete(t.wish.out, w.Before().Shard.Index) // it went with the change
		}
	}
	return true, nil
}

// errMade ends an adjustment whose key was used before.
var errMade = errors.New("the adjustment was made before")

// unmade returns errMade where an adjustment with the key was made before. It is asked before
// leases are recalled, and with the commit.
func (t *adjustment) unmade(ctx context.Context) error {
	if t.Once == "" {
		return nil
	}
	first, made, err := t.cfg.Buckets.Made(ctx, schema.OnceKey(t.ns.ID, t.Once), t.wall())
	if err == nil && made {
		t.first, err = first, errMade
	}
	return err
}

// wall returns the time by which keys are remembered.
func (t *adjustment) wall() time.Time { return t.cfg.Clock.Correct(t.cfg.Now()) }

// none is the outcome where there is no bucket, or no answer of the table.
func (t *adjustment) none(err error) (limiter.Adjusted, error) {
	if errors.Is(err, errMade) {
		return limiter.Adjusted{Repeated: true, First: t.FirstOf(t.first)}, nil
	}
	return limiter.Adjusted{}, err
}

// repeated is the outcome of an adjustment that was made before.
func (t *adjustment) repeated(leaves []*schema.Bucket) limiter.Adjusted {
	state := stateOf(t.Bucket, leaves, t.at())
	return limiter.Adjusted{Found: true, Repeated: true, Before: state, After: state, First: t.FirstOf(t.first)}
}

// key returns the key of a shard.
func (t *adjustment) key(shard int) schema.Key {
	return schema.BucketKey(t.ns.ID, t.Bucket, shard)
}

// tend has the shards of a split or a merge finished, and waits a moment.
func (t *adjustment) tend(ctx context.Context, items map[int]*schema.Bucket) error {
	for _, index := range slices.Sorted(maps.Keys(items)) {
		t.cfg.Engine().Changed(t.ns.ID, t.Bucket, index)
	}
	return t.pause(ctx)
}
