package awscmd

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
)

// timedBudgets is budgets of a table, and how much time a call has left for them.
type timedBudgets struct {
	aggregator.Snapshots

	begin, end time.Duration
}

func (w *timedBudgets) Begin(ctx context.Context) aggregator.Snapshots {
	deadline, _ := ctx.Deadline()
	w.begin = time.Until(deadline)
	return w.Snapshots
}

func (w *timedBudgets) End(ctx context.Context) ToldEvents {
	deadline, _ := ctx.Deadline()
	w.end = time.Until(deadline)
	<-ctx.Done()
	return ToldEvents{Events: 3}
}

// However slow the table is, there is time at the end of a call to send events, and the call ends in time.
func TestCallsLeaveTimeForEvents(t *testing.T) {
	for left, want := range map[time.Duration]struct{ begin, end time.Duration }{
		time.Minute:      {mostBegin, mostEnd},
		10 * time.Second: {3 * time.Second, 3 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out strings.Builder
			w := &timedBudgets{Snapshots: slowTable{newLambdaTable()}}
			f := newFunction(t, newLambdaTable(), map[string]int{}, &out)
			f.cfg.Budgets = w
			ctx, stop := context.WithTimeout(t.Context(), left)
			defer stop()
			begun := time.Now()
			answer, err := f.Handle(ctx, LambdaEvent{Records: []json.RawMessage{rawRecord(7, "ada", "1")}, ShardID: shard})
			if err != nil || len(answer.BatchItemFailures) != 1 {
				t.Errorf("%v: %+v, %v", left, answer, err)
			}
			if took := time.Since(begun); took > left-defaultFunctionMargin || w.begin != want.begin || w.end != want.end {
				t.Errorf("%v: it took %v; %v at the begin, %v at the end", left, took, w.begin, w.end)
			}
			if !strings.Contains(out.String(), `"BudgetEvents":3`) {
				t.Errorf("metrics %s", out.String())
			}
		})
	}
}

// Events go to the archive also where usage takes all the time of each call.
func TestTheArchiveHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := newLambdaTable()
		f := newFunction(t, to, map[string]int{}, nil)
		f.cfg.Stream = slowTable{to}
		f.cfg.Archive = slowArchive{to}
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		answer, err := f.Handle(ctx, LambdaEvent{Records: []json.RawMessage{rawRecord(7, "audit", ""), rawRecord(8, "ada", "1")}, ShardID: shard})
		if err != nil || len(answer.BatchItemFailures) != 1 || answer.BatchItemFailures[0].ItemIdentifier != "8" || len(to.archive) != 1 {
			t.Errorf("%+v, %v, %d objects", answer, err, len(to.archive))
		}
	})
}

// slowArchive takes a second for an object.
type slowArchive struct{ *lambdaTable }

func (a slowArchive) Put(ctx context.Context, name string, object []byte) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Second):
		return a.lambdaTable.Put(ctx, name, object)
	}
}
