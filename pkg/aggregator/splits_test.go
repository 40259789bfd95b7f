package aggregator

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// splitter finishes splits, with the results of a test.
type splitter struct {
	calls []string
	err   error
}

func (s *splitter) FinishSplit(_ context.Context, item string) (bool, error) {
	s.calls = append(s.calls, item)
	return s.err == nil, s.err
}

func (s *splitter) called() []string {
	calls := s.calls
	s.calls = nil
	return calls
}

// A split is tried when its last record says that it is open, and again only where that may help.
func TestOpenSplits(t *testing.T) {
	record := func(item string, splitting bool) *Record {
		return &Record{Item: item, New: &Image{Splitting: splitting}}
	}
	for _, tt := range []struct {
		name    string
		records []*Record
		err     error
		want    []string
		again   []string
	}{
		{name: "none", records: []*Record{{Other: true, New: &Image{Splitting: true}}, record("a", false), {Item: "b", Old: &Image{Splitting: true}}}},
		{name: "open", records: []*Record{record("a", true)}, want: []string{"a"}},
		{name: "finished since", records: []*Record{record("a", true), record("a", false)}},
		{name: "removed since", records: []*Record{record("a", true), {Item: "a"}}},
		{name: "unavailable", records: []*Record{record("a", true)}, err: fmt.Errorf("%w: no answer", limiter.ErrUnavailable), want: []string{"a"}, again: []string{"a"}},
		{name: "uncertain", records: []*Record{record("a", true)}, err: fmt.Errorf("%w: lost", limiter.ErrUncertain), want: []string{"a"}, again: []string{"a"}},
		{name: "invalid", records: []*Record{record("a", true)}, err: limiter.ErrInvalid, want: []string{"a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var open OpenSplits
			for _, r := range tt.records {
				open.Add(r)
			}
			by := &splitter{err: tt.err}
			finished, err := open.Finish(t.Context(), by)
			if diff := cmp.Diff(tt.want, by.called()); diff != "" || !errors.Is(err, tt.err) || tt.err == nil && finished != len(tt.want) {
				t.Errorf("%d finished, %v, calls (-want +got):\n%s", finished, err, diff)
			}
			_, _ = open.Finish(t.Context(), by)
			if diff := cmp.Diff(tt.again, by.called()); diff != "" {
				t.Errorf("calls of the second time (-want +got):\n%s", diff)
			}
		})
	}
}

// The memory of splits is bounded, and no call is made when the time is over.
func TestOpenSplitsAreBounded(t *testing.T) {
	var open OpenSplits
	for i := range 2 * maxOpenSplits {
		open.Add(&Record{Item: strconv.Itoa(i), New: &Image{Splitting: true}})
	}
	if len(open.items) != maxOpenSplits {
		t.Errorf("%d splits are remembered, want %d", len(open.items), maxOpenSplits)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	by := new(splitter)
	if _, _ = open.Finish(ctx, by); len(by.calls) > 0 {
		t.Errorf("%d calls after the end", len(by.calls))
	}
}
