package fleet

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/api"
)

// Aggregators are the reports of the aggregators of a store.
type Aggregators interface {
	// Aggregators returns the last reports of the last aggregator.ProgressAge, in any order.
	Aggregators(ctx context.Context) ([]aggregator.Progress, error)
}

const (
	// MaxLag is the lag of an aggregator that needs a person, that of the alert RatelimitAggregatorLag.
	MaxLag = 300 * time.Second
	// stoppedAge is for how long an aggregator that was stopped in order is missed: a stream keeps records for a day.
	stoppedAge = 24 * time.Hour
	// reportPause is how much later than its last report a function may have counted records. It reports once in
	// aggregator.ReportEvery, of calls that Lambda makes some seconds after the records.
	reportPause = time.Minute
)

// aggregators are the reports of the aggregators, as they were read last.
type aggregators struct {
	asking

	store   Aggregators // nil = the store has no reports of aggregators
	counts  bool        // the store counts usage by itself: an aggregator archives audit events
	usage   bool        // the store keeps usage
	budgets func() bool // the configuration has budgets; nil = it has none
	known   []aggregatorReport
	done    bool // they were read, once at least; mu guards it and known
}

// aggregatorReport is the report of an aggregator, and when it was written.
type aggregatorReport struct {
	aggregator.Progress

	seen time.Time
}

func newAggregators(cfg *Config) *aggregators {
	return &aggregators{asking: newAsking(cfg), store: cfg.Aggregators, counts: cfg.Counts, usage: cfg.Usage, budgets: cfg.Budgets}
}

// read reads the reports, if that is due. After a failure those of before are left.
func (a *aggregators) read(ctx context.Context) {
	if a.store == nil {
		return
	}
	var stored []aggregator.Progress
	a.ask(ctx, "the reports of aggregators could not be read", func(ctx context.Context) (err error) {
		stored, err = a.store.Aggregators(ctx)
		return err
	}, func(at time.Time) {
		a.known, a.done = make([]aggregatorReport, len(stored)), true
		for i := range stored {
			a.known[i] = aggregatorReport{stored[i], at.Add(-stored[i].Age)}
		}
	})
}

// state returns the state of the aggregators by their reports, next to the decisions of the replicas.
func (a *aggregators) state(decided *api.Fleet) *api.Aggregator {
	a.mu.Lock()
	known, done := a.known, a.done
	a.mu.Unlock()
	known = seen(decided.Time, known)
	switch {
	case a.store == nil || a.counts && len(known) == 0:
		if a.usage {
			return &api.Aggregator{State: api.AggregatorNotNeeded, Text: "not needed: the store counts usage with each decision"}
		}
		return &api.Aggregator{State: api.AggregatorNotNeeded, Text: "not needed: the store keeps no usage"}
	case !done:
		return &api.Aggregator{State: api.AggregatorUnknown, Text: "not known: the store does not answer, or this replica may not read the reports of aggregators"}
	}
	return a.duty().aggregated(decided.Time, known, func(after time.Time) time.Time { return undone(decided, after) }, a.budgets != nil && a.budgets())
}

// duty is the words for the work of aggregators.
type duty struct {
	late string // what comes late
	soon string // what to do about one that is gone
}

// duty returns the words for the store.
func (a *aggregators) duty() *duty {
	if a.counts {
		return &duty{"the archive of audit events is late", "start one within audit.retention, and nothing is lost; the end of its log has the reason"}
	}
	return &duty{"usage and budget events are late", "start one within 24 hours, and nothing is lost; the end of its log has the reason"}
}

// undone returns the begin of the first step with admitted decisions that began after a time; zero = the last half hour
// has none. Such decisions change buckets, and the stream of the table has their records.
func undone(decided *api.Fleet, after time.Time) time.Time {
	step := time.Duration(decided.StepSeconds) * time.Second
	for i, n := range decided.Results["allowed"] {
		if begin := decided.Begin.Add(time.Duration(i) * step); n > 0 && begin.After(after) {
			return begin
		}
	}
	return time.Time{}
}

// seen returns the reports that count.
func seen(now time.Time, known []aggregatorReport) []aggregatorReport {
	return slices.DeleteFunc(slices.Clone(known), func(r aggregatorReport) bool {
		age := now.Sub(r.seen)
		return age >= aggregator.ProgressAge || r.Stopped && age >= stoppedAge
	})
}

// aggregated judges the reports of aggregators that count. undone is that of the decisions of the replicas.
func (d *duty) aggregated(now time.Time, known []aggregatorReport, undone func(after time.Time) time.Time, budgets bool) *api.Aggregator {
	if len(known) == 0 {
		return unseen(now, undone(time.Time{}), budgets)
	}
	slices.SortStableFunc(known, func(a, b aggregatorReport) int { return b.seen.Compare(a.seen) })
	out := &api.Aggregator{Seen: known[0].seen.UTC().Truncate(time.Millisecond), Function: known[0].Function}
	for _, r := range known {
		if r.Stopped || now.Sub(r.seen) >= Live {
			continue
		}
		out.Processes++
		if r.Problem != "" {
			out.Problem = r.Problem
		}
		if r.Shards > 0 {
			lag := max(now.Sub(r.seen)+r.Behind, 0).Seconds()
			if out.LagSeconds == nil || lag > *out.LagSeconds {
				out.LagSeconds = &lag
			}
		}
	}
	switch {
	case out.Processes > 0:
		return d.running(out)
	case out.Function:
		return d.waiting(now, out, undone(out.Seen.Add(reportPause)))
	}
	return d.silent(now, out, &known[0])
}

// unseen judges a table without an aggregator. Budgets need one, as soon as there are decisions.
func unseen(now, undone time.Time, budgets bool) *api.Aggregator {
	out := &api.Aggregator{State: api.AggregatorUnseen, Text: fmt.Sprintf("none seen in the last %d days: usage is not counted", aggregator.ProgressAge/(24*time.Hour))}
	if budgets && !undone.IsZero() && now.Sub(undone) > MaxLag {
		out.Text += ", and budgets are not compared"
		out.Do = "start one within 24 hours of the decisions, and nothing is lost: ratelimit aggregate --config FILE"
	}
	return out
}

// running judges aggregators that report.
func (d *duty) running(out *api.Aggregator) *api.Aggregator {
	lag := out.Lag()
	switch {
	case out.Problem != "":
		out.State, out.Text = api.AggregatorFailing, "it fails: "+out.Problem+"; "+d.late
		out.Do = "/readyz and the log of each aggregator"
	case out.LagSeconds == nil:
		out.State, out.Text = api.AggregatorCurrent, "it starts: it reads no shard of the stream yet"
	case lag > MaxLag:
		out.State, out.Text = api.AggregatorBehind, roughly(lag)+" behind: "+d.late
		out.Do = "the metrics ratelimit_aggregate_* and the log of each aggregator; processors, memory, more processes"
	default:
		out.State, out.Text = api.AggregatorCurrent, current(lag)
	}
	return out
}

// waiting judges a function that has reported nothing for a while. Where replicas admit no request, no record calls it.
func (d *duty) waiting(now time.Time, out *api.Aggregator, undone time.Time) *api.Aggregator {
	out.State, out.Text = api.AggregatorCurrent, "up to date: its function ran "+roughly(now.Sub(out.Seen))+" ago, and there was little or nothing to count since"
	if undone.IsZero() {
		return out
	}
	lag := now.Sub(undone)
	seconds := lag.Seconds()
	out.LagSeconds = &seconds
	if lag > MaxLag {
		out.State, out.Text = api.AggregatorSilent, "its function has reported nothing for "+roughly(now.Sub(out.Seen))+": "+d.late
		out.Do = "the function's log, its errors and throttles, and its event source mapping"
	}
	return out
}

// silent judges a process that reports no more. last is its last report.
func (d *duty) silent(now time.Time, out *api.Aggregator, last *aggregatorReport) *api.Aggregator {
	lag := now.Sub(last.seen) + last.Behind
	seconds := max(lag, 0).Seconds()
	out.LagSeconds = &seconds
	if lag <= MaxLag {
		out.State, out.Text = api.AggregatorCurrent, current(lag)
		return out
	}
	out.State, out.Text = api.AggregatorSilent, "it has reported nothing for "+roughly(now.Sub(last.seen))+": "+d.late
	if last.Stopped {
		out.Text = "it was stopped " + roughly(now.Sub(last.seen)) + " ago: " + d.late
	}
	out.Do = d.soon
	return out
}

// current says how far an aggregator is that is not late.
func current(lag time.Duration) string {
	if lag < 2*time.Minute {
		return "up to date " + roughly(lag) + " ago"
	}
	return roughly(lag) + " behind"
}

// roughly returns a time for people: seconds below two minutes, minutes below two hours, hours above.
func roughly(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	}
	return fmt.Sprintf("%d h", int(d.Hours()))
}
