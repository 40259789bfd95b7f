package awscmd

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// desk keeps the reports of a function.
type desk struct {
	all []aggregator.Progress
	err error
}

func (d *desk) Report(_ context.Context, p *aggregator.Progress) error {
	d.all = append(d.all, *p)
	return errors.Join(d.err, p.Check())
}

// An instance reports how old the newest record of a call is, at most once in 15 seconds. Where records are not counted it reports
// nothing, and a report that fails costs no call.
func TestLambdaReports(t *testing.T) {
	to, d := newLambdaTable(), new(desk)
	now := time.Unix(1_700_000_003, 0)
	f, err := NewFunction(FunctionConfig{Stream: to, Windows: []limiter.UsageWindow{limiter.UsageHour}, Reports: d, ReportID: "one", Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	number := 0
	call := func(want int) {
		t.Helper()
		number++
		answer, err := f.Handle(t.Context(), LambdaEvent{ShardID: shard, Records: []json.RawMessage{rawRecord(number, "ada", "1")}})
		if err != nil || len(answer.BatchItemFailures) != want {
			t.Errorf("call %d: %+v, %v", number, answer, err)
		}
	}
	both := []aggregator.Progress{{ID: "one", Function: true, Shards: 1, Behind: 3 * time.Second}, {ID: "one", Function: true, Shards: 1, Behind: 18 * time.Second}}
	want := both[:1]
	for range 3 {
		call(0)
	}
	now = now.Add(aggregator.ReportEvery - time.Millisecond)
	call(0)
	if diff := cmp.Diff(want, d.all); diff != "" {
		t.Errorf("within 15 s (-want +got)\n%s", diff)
	}
	now = now.Add(time.Millisecond)
	to.fault = func() (bool, error) { return false, errDown }
	call(1)
	if diff := cmp.Diff(want, d.all); diff != "" {
		t.Errorf("records that are not counted (-want +got)\n%s", diff)
	}
	to.fault, d.err = func() (bool, error) { return true, nil }, errDown
	call(0)
	if diff := cmp.Diff(both, d.all); diff != "" {
		t.Errorf("after 15 s (-want +got)\n%s", diff)
	}
	if _, err := f.Handle(t.Context(), LambdaEvent{}); err != nil || len(d.all) != 2 {
		t.Errorf("the end of a window: %v, %d reports", err, len(d.all))
	}
	if _, err := NewFunction(FunctionConfig{Stream: to, Reports: d}); !errors.Is(err, limiter.ErrInvalid) {
		t.Errorf("without an id: %v", err)
	}
}
