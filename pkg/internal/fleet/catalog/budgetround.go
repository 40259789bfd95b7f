package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	// roundEvery is the time between two rounds. A round is over the snapshots of hours that are not over
	// for twice that time.
	roundEvery = 10 * time.Minute
	// claimEvery is how often a process looks whether a round is due.
	claimEvery = time.Minute
	// freshRound is how old the last round is at least for one of a process that starts, or that has missed
	// changes.
	freshRound = 10 * time.Second
	roundPage  = 100 // snapshots that are read together
	roundShare = 20  // divisor of the share of time that a round takes at most
)

// goRound makes rounds until ctx is done. A round compares all usage of the last hour: also that of a
// process which was killed between a write and its comparison. One process of all makes each round.
func (w *BudgetWatch) goRound(ctx context.Context) {
	w.miss() // whatever was before this process
	for {
		w.makeRound(ctx)
		if (awsdb.Goroutines{}).Sleep(ctx, claimEvery) != nil {
			return
		}
	}
}

// miss notes that snapshots are to be compared that are not known.
func (w *BudgetWatch) miss() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.missed = w.cfg.Now()
}

// makeRound makes a round, where one is due.
func (w *BudgetWatch) makeRound(ctx context.Context) {
	mine, err := w.claim(ctx)
	if err == nil && mine {
		err = w.compareAll(ctx)
	}
	if err != nil {
		if !errors.Is(err, limiter.ErrInvalid) { // else no further try helps
			w.miss()
		}
		w.fails(ctx, err)
	}
}

// claim reports whether this process is to make a round now.
func (w *BudgetWatch) claim(ctx context.Context) (mine bool, err error) {
	now, missed := w.cfg.Now(), w.lastMissed()
	before := now.Add(-roundEvery)
	if !missed.IsZero() {
		before = now.Add(-freshRound)
	}
	ctx, stop := context.WithTimeout(ctx, noteTimeout)
	defer stop()
	_, err = w.cfg.Items.Write(ctx, schema.ClaimRound(now, before))
	item, refused := awsdb.ConditionItem(err)
	if err != nil && !refused {
		return false, fmt.Errorf("a round over usage: %w", awsdb.Translate(err))
	}
	if !refused || !schema.RoundAt(w.cfg.Table, item).Before(missed.Truncate(time.Millisecond)) {
		w.found(missed)
	}
	return !refused, nil
}

// lastMissed returns when snapshots were missed last; zero = none were.
func (w *BudgetWatch) lastMissed() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.missed
}

// found notes that a round has begun after some snapshots were missed.
func (w *BudgetWatch) found(missed time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.missed.Equal(missed) {
		w.missed = time.Time{}
	}
}

// compareAll compares the snapshots of the last hour, of all namespaces.
func (w *BudgetWatch) compareAll(ctx context.Context) error {
	names, err := w.notes.namespaces(ctx)
	if err != nil {
		return err
	}
	last := limiter.UsageFilter{Window: limiter.UsageHour, From: limiter.UsageHour.Start(w.cfg.Now().Add(-2 * roundEvery))}
	for ns := range names {
		for _, q := range schema.QueriesUsage(w.cfg.Table, ns, last) {
			if err := w.comparePages(ctx, q); err != nil {
				return err
			}
		}
	}
	return nil
}

// comparePages compares the snapshots that a query finds.
func (w *BudgetWatch) comparePages(ctx context.Context, q *dynamodb.QueryInput) error {
	q.Limit = aws.Int32(roundPage)
	for {
		began, set := time.Now(), newBudgetsInForce(w.budgets())
		found, err := w.page(ctx, q)
		if err != nil {
			return err
		}
		for keys := range slices.Chunk(found, comparedTogether) {
			if err := w.compare(ctx, set, keys); err != nil {
				if !errors.Is(err, limiter.ErrInvalid) {
					w.add(keys...) // it may have noted events, which another round does not tell
				}
				return err
			}
		}
		if len(q.ExclusiveStartKey) == 0 {
			return nil
		}
		if err := (awsdb.Goroutines{}).Sleep(ctx, (roundShare-1)*time.Since(began)); err != nil {
			return err
		}
	}
}

// page returns the keys of a page, and has the query go on behind it.
func (w *BudgetWatch) page(ctx context.Context, q *dynamodb.QueryInput) (keys []schema.Key, err error) {
	ctx, stop := context.WithTimeout(ctx, noteTimeout)
	defer stop()
	out, err := w.cfg.Items.Query(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("snapshots of usage: %w", awsdb.TranslateRead(err))
	}
	for _, item := range out.Items {
		if k, err := schema.ItemKey(w.cfg.Table, item); err == nil {
			keys = append(keys, k)
		}
	}
	q.ExclusiveStartKey = out.LastEvaluatedKey
	return keys, nil
}
