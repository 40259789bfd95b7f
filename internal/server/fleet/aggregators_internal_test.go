package fleet

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// The state of the aggregators has the words and the next step that an operator needs, and no false alarm.
func TestAggregated(t *testing.T) {
	const (
		late = "usage and budget events are late"
		half = 30 * time.Minute // of decisions that are known
	)
	process := func(age, behind time.Duration, change func(*aggregator.Progress)) aggregator.Progress {
		p := aggregator.Progress{ID: "p", Shards: 2, Age: age, Behind: behind}
		if change != nil {
			change(&p)
		}
		return p
	}
	stopped := func(p *aggregator.Progress) { p.Stopped, p.Shards, p.Behind = true, 0, 0 }
	function := func(p *aggregator.Progress) { p.Function, p.Shards = true, 1 }
	idle := func(p *aggregator.Progress) { p.Shards, p.Behind = 0, 0 }
	fails := func(p *aggregator.Progress) { p.Problem = "no permission" }
	type reports = []aggregator.Progress
	for name, tt := range map[string]struct {
		reports reports
		decided []time.Duration // ages of admitted decisions
		budgets bool
		state   api.AggregatorState
		text    string
		person  bool
	}{
		"none, without budgets":           {nil, []time.Duration{half, time.Minute}, false, api.AggregatorUnseen, "none seen in the last 3 days: usage is not counted", false},
		"none, without decisions":         {nil, nil, true, api.AggregatorUnseen, "none seen in the last 3 days: usage is not counted", false},
		"none, with new decisions":        {nil, []time.Duration{4 * time.Minute}, true, api.AggregatorUnseen, "none seen in the last 3 days: usage is not counted", false},
		"none, with budgets":              {nil, []time.Duration{6 * time.Minute}, true, api.AggregatorUnseen, "none seen in the last 3 days: usage is not counted, and budgets are not compared", true},
		"one that follows":                {reports{process(2*time.Second, time.Second, nil)}, []time.Duration{half, 0}, true, api.AggregatorCurrent, "up to date 3 s ago", false},
		"one of no traffic":               {reports{process(14*time.Second, time.Second, nil)}, nil, true, api.AggregatorCurrent, "up to date 15 s ago", false},
		"one that is a little late":       {reports{process(0, 5*time.Minute, nil)}, nil, true, api.AggregatorCurrent, "5 min behind", false},
		"one that is just late":           {reports{process(time.Second, 5*time.Minute, nil)}, nil, false, api.AggregatorBehind, "5 min behind: " + late, true},
		"one that is late":                {reports{process(10*time.Second, 14*time.Minute, nil)}, nil, false, api.AggregatorBehind, "14 min behind: " + late, true},
		"two, of which one is late":       {reports{process(0, 0, nil), process(time.Second, 20*time.Hour, nil)}, nil, true, api.AggregatorBehind, "20 h behind: " + late, true},
		"one beside a dead one":           {reports{process(90*time.Second, 0, nil), process(time.Second, 0, nil)}, nil, true, api.AggregatorCurrent, "up to date 1 s ago", false},
		"one that starts":                 {reports{process(time.Second, 0, idle)}, nil, true, api.AggregatorCurrent, "it starts: it reads no shard of the stream yet", false},
		"one without a shard beside one":  {reports{process(0, 0, idle), process(0, time.Second, nil)}, nil, true, api.AggregatorCurrent, "up to date 1 s ago", false},
		"one that fails":                  {reports{process(time.Second, 0, fails)}, nil, true, api.AggregatorFailing, "it fails: no permission; " + late, true},
		"one that is replaced":            {reports{process(4*time.Minute, time.Second, stopped)}, nil, true, api.AggregatorCurrent, "4 min behind", false},
		"one that just died":              {reports{process(5*time.Minute+time.Second, 0, nil)}, nil, false, api.AggregatorSilent, "it has reported nothing for 5 min: " + late, true},
		"one that died":                   {reports{process(14*time.Minute, time.Second, nil)}, nil, false, api.AggregatorSilent, "it has reported nothing for 14 min: " + late, true},
		"one that was stopped":            {reports{process(23*time.Hour, 0, stopped)}, nil, false, api.AggregatorSilent, "it was stopped 23 h ago: " + late, true},
		"one that is not wanted any more": {reports{process(25*time.Hour, 0, stopped)}, []time.Duration{time.Second}, false, api.AggregatorUnseen, "none seen in the last 3 days: usage is not counted", false},
		"one that died days ago":          {reports{process(71*time.Hour, 0, nil)}, nil, false, api.AggregatorSilent, "it has reported nothing for 71 h: " + late, true},
		"a function":                      {reports{process(5*time.Second, 4*time.Second, function)}, []time.Duration{time.Minute}, true, api.AggregatorCurrent, "up to date 9 s ago", false},
		"a function that is late":         {reports{process(5*time.Second, time.Hour, function)}, []time.Duration{time.Minute}, true, api.AggregatorBehind, "60 min behind: " + late, true},
		"a function of no traffic":        {reports{process(26*time.Hour, time.Second, function)}, nil, true, api.AggregatorCurrent, "up to date: its function ran 26 h ago, and there was little or nothing to count since", false},
		"a function that has its last calls behind": {
			reports{process(20*time.Minute, time.Second, function)},
			[]time.Duration{half, 20*time.Minute - 30*time.Second},
			true,
			api.AggregatorCurrent, "up to date: its function ran 20 min ago, and there was little or nothing to count since", false,
		},
		"a function that is called again": {
			reports{process(26*time.Hour, time.Second, function)},
			[]time.Duration{time.Minute},
			true,
			api.AggregatorCurrent, "up to date: its function ran 26 h ago, and there was little or nothing to count since", false,
		},
		"a function that is not called": {
			reports{process(26*time.Hour, time.Second, function)},
			[]time.Duration{10 * time.Minute},
			false,
			api.AggregatorSilent, "its function has reported nothing for 26 h: " + late, true,
		},
		"a function that just misses its calls": {
			reports{process(26*time.Hour, time.Second, function)},
			[]time.Duration{5*time.Minute + 20*time.Second},
			false,
			api.AggregatorSilent, "its function has reported nothing for 26 h: " + late, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
			known := make([]aggregatorReport, len(tt.reports))
			for i, r := range tt.reports {
				known[i] = aggregatorReport{r, now.Add(-r.Age)}
			}
			got := new(aggregators).duty().aggregated(now, seen(now, known), func(after time.Time) time.Time { return undone(decisions(now, tt.decided), after) }, tt.budgets)
			if got.State != tt.state || got.Text != tt.text || (got.Do != "") != tt.person {
				t.Errorf("got %+v\nwant %s, %q, a next step %v", got, tt.state, tt.text, tt.person)
			}
		})
	}
}

// decisions is the last half hour of a fleet with an admitted decision at each of some ages.
func decisions(now time.Time, ages []time.Duration) *api.Fleet {
	f := &api.Fleet{Time: now, StepSeconds: int(Step / time.Second), Begin: now.Add(-(Steps - 1) * Step), Results: map[string][]int64{"allowed": make([]int64, Steps), "denied": make([]int64, Steps)}}
	for i := range f.Results["denied"] {
		f.Results["denied"][i] = 7 // denials change no bucket
	}
	for _, age := range ages {
		f.Results["allowed"][max(int(now.Add(-age).Sub(f.Begin)/Step), 0)]++
	}
	return f
}

// tellers are the aggregators of a store, which can fail.
type tellers struct {
	all   []aggregator.Progress
	err   error
	reads int
}

func (r *tellers) Aggregators(context.Context) ([]aggregator.Progress, error) {
	r.reads++
	return slices.Clone(r.all), r.err
}

// The state of a fleet has its aggregators, and says so where none is needed. Many readers cost one read, and a failure no more than
// the newer reports.
func TestAggregatorsOfAFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := func(change func(*Config)) *Fleet {
			cfg := Config{Now: time.Now, Decided: func() map[string]int64 { return nil }, Health: func() admin.State { return admin.State{} }, Events: NewEvents(time.Now), Started: time.Now()}
			change(&cfg)
			return New(cfg)
		}
		for want, usage := range map[string]bool{"not needed: the store counts usage with each decision": true, "not needed: the store keeps no usage": false} {
			if got := open(func(c *Config) { c.Usage = usage }).State(t.Context()).Aggregator; got.State != api.AggregatorNotNeeded || got.Text != want || got.Do != "" {
				t.Errorf("got %+v, want %q", got, want)
			}
		}
		archivers := &tellers{err: limiter.ErrUnavailable}
		of := open(func(c *Config) { c.Usage, c.Counts, c.Aggregators = true, true, archivers })
		for _, tt := range []struct {
			all  []aggregator.Progress
			err  error
			want api.AggregatorState
			text string
		}{
			{nil, limiter.ErrUnavailable, api.AggregatorNotNeeded, "not needed: the store counts usage with each decision"},
			{nil, nil, api.AggregatorNotNeeded, "not needed: the store counts usage with each decision"},
			{[]aggregator.Progress{{ID: "a", Shards: 1, Age: 2 * time.Second}}, nil, api.AggregatorCurrent, "up to date 2 s ago"},
			{[]aggregator.Progress{{ID: "a", Shards: 1, Problem: "no bucket"}}, nil, api.AggregatorFailing, "it fails: no bucket; the archive of audit events is late"},
			{[]aggregator.Progress{{ID: "a", Stopped: true, Age: time.Hour}}, nil, api.AggregatorSilent, "it was stopped 60 min ago: the archive of audit events is late"},
			{[]aggregator.Progress{{ID: "a", Stopped: true, Age: 25 * time.Hour}}, nil, api.AggregatorNotNeeded, "not needed: the store counts usage with each decision"},
		} {
			time.Sleep(Fresh)
			archivers.all, archivers.err = tt.all, tt.err
			if got := of.State(t.Context()).Aggregator; got.State != tt.want || got.Text != tt.text {
				t.Errorf("archivers %+v: %+v", tt.all, got)
			}
		}
		store := &tellers{err: limiter.ErrUnavailable}
		f := open(func(c *Config) { c.Usage, c.Aggregators = true, store })
		if got := f.State(t.Context()).Aggregator; got.State != api.AggregatorUnknown || got.Do != "" {
			t.Errorf("a store that does not answer: %+v", got)
		}
		time.Sleep(Fresh)
		store.err, store.all = nil, []aggregator.Progress{{ID: "a", Shards: 1, Age: 2 * time.Second}}
		before := store.reads
		for range 10 {
			if got := f.State(t.Context()).Aggregator; got.State != api.AggregatorCurrent || got.Processes != 1 || got.Lag() != 2*time.Second {
				t.Errorf("got %+v", got)
			}
		}
		if n := store.reads - before; n != 1 {
			t.Errorf("%d reads", n)
		}
		store.err = errors.New("broken")
		time.Sleep(20 * time.Second)
		if got := f.State(t.Context()).Aggregator; got.State != api.AggregatorCurrent || got.Lag() != 22*time.Second {
			t.Errorf("after a failure: %+v", got)
		}
	})
}
