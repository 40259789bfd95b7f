package fleet_test

import (
	"context"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

// The admissions of several processes on one bucket are those of one token bucket that is asked
// one after the other. Calls are lost and refused on the way, and there are refunds. A denial
// is right for the tokens that concurrent calls of its replica leave, as of denialAge ago at
// most. A fleet whose writes are applied twice is found out. The refill does not count; make
// torture has a history in which it does.
func TestLinearizable(t *testing.T) {
	for _, tt := range []struct {
		history, defect string
		want            bool
	}{
		{"taken", "", true}, {"taken and given back", "", true}, {"taken", "a write that was applied before", false},
	} {
		t.Run(tt.history+" "+tt.defect, func(t *testing.T) {
			f, h := checkHistory(t, tt.history, tt.defect, tt.want)
			if tt.want {
				h.checkDenials(t, f)
			}
		})
	}
}

// checkHistory runs a fleet with a defect, "" = none, and wants its admissions to be those of
// one token bucket, or not to be.
func checkHistory(t *testing.T, history, defect string, want bool) (*fleet, chronicles) {
	t.Helper()
	for try := 1; ; try++ {
		f := newFleet(t, scenario{history: history, skews: make([]time.Duration, 3), decisions: 2400, faults: timelyFaults(), defect: defect, patience: 5 * time.Minute})
		h := f.chronicle(t)
		f.faults.require(t, f.proxy)
		got := h.linearizable(h.granted)
		if want && got == porcupine.Illegal && try < mostTries && h.linearizable(append(h.granted, h.copies()...)) == porcupine.Ok {
			t.Logf("seed %d: a machine that stood still had a write applied after it was sent again; the next fleet may be in time", f.seed)
			continue
		}
		if (got == porcupine.Ok) != want {
			t.Errorf("seed %d: the history of %d calls is linearizable: %v, want %t", f.seed, len(h.granted), got, want)
		}
		return f, h
	}
}

// mostTries is how many fleets run until one has no write that is applied late.
const mostTries = 3

// linearizable reports whether calls are those of one token bucket.
func (h *chronicles) linearizable(calls []porcupine.Operation) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(bucketModel(h.limit, h.first), calls, 30*time.Second)
}

// latest is how long after the end of a call a copy of its write may be applied, of a process that
// stood still.
const latest = 2 * time.Second

// copies returns writes of vague takes that may have been applied once more, see timelyFaults. The answers
// from one write have its replica and time. One with a refund is never applied twice.
func (h *chronicles) copies() (all []porcupine.Operation) {
	type write struct {
		replica int
		at      int64
	}
	of := make(map[write]porcupine.Operation)
	for _, o := range h.granted {
		e, _ := o.Input.(entry)
		if !e.Vague && e.Outcome != uncertain {
			continue
		}
		w := write{o.ClientId / chronicleCallers, e.Bucket.Refilled}
		sum, known := of[w]
		if !known {
			sum = porcupine.Operation{ClientId: o.ClientId, Input: entry{From: o.Call, Outcome: uncertain}, Call: o.Call}
		}
		c, _ := sum.Input.(entry)
		c.Take, c.Refund = c.Take+e.Take, c.Refund+e.Refund
		sum.Input, sum.Output, sum.Return = c, c, max(sum.Return, o.Return+int64(latest))
		sum.Call = min(sum.Call, o.Call)
		of[w] = sum
	}
	for _, o := range of {
		if e, _ := o.Input.(entry); e.Refund == 0 {
			all = append(all, o)
		}
	}
	return all
}

// checkDenials requires each denial to be right for the tokens that concurrent calls of
// its replica leave, or that are scarce for all replicas: see the shortage of docs/design/fleet.md.
func (h *chronicles) checkDenials(t *testing.T, f *fleet) {
	t.Helper()
	for _, e := range h.denied {
		scarce := e.Take + e.Beside
		if e.ByShare {
			scarce *= 2 * int64(len(f.skews))
		}
		if least := h.least(&e); least >= scarce {
			t.Fatalf("seed %d: a call for %d millitokens was denied while there were %d at least, and calls beside it asked for %d; by the replica's part: %t", f.seed, e.Take, least, e.Beside, e.ByShare)
		}
	}
}

// chronicles are the records of replicas, without calls that were certainly not
// applied.
type chronicles struct {
	limit   limiter.Limit
	first   tokenbucket.Bucket // before all calls of replicas
	granted []porcupine.Operation
	denied  []entry
}

// denialAge is how old the state may be that a request is denied by: later refunds of
// other replicas are missing from it.
const denialAge = 100 * time.Millisecond

// least returns the least that the bucket can have had, without the calls beside a denied
// one, when that was decided. The bucket is never full.
func (h *chronicles) least(d *entry) int64 {
	sum := h.first.Refill(h.limit.Params(), d.Bucket.Refilled).Tokens
	for _, o := range h.granted {
		e, _ := o.Input.(entry)
		if e.From <= d.To {
			sum -= e.Take
		}
		if e.To < d.From-int64(denialAge) && e.Outcome == admitted {
			sum += e.Refund
		}
	}
	return sum
}

// beside returns the sum that the calls of a replica asked for that overlap one of them. A vague one counts
// for the time of an attempt longer: a copy of its write may have no outcome yet, and its take counts twice.
func beside(all []entry, k int) int64 {
	sum := int64(0)
	for i := range all {
		end := all[i].To
		if all[i].Vague {
			end += int64(attempt)
		}
		if i != k && all[i].From <= all[k].To && end >= all[k].From {
			sum += all[i].Take
		}
	}
	return sum
}

// begin creates the bucket, takes some of its tokens, and returns the rest. A bucket that
// is nearly full can lose refill to a lift, as docs/design/fleet.md says.
func (f *fleet) begin(t *testing.T, limit limiter.Limit) tokenbucket.Bucket {
	t.Helper()
	store, err := dynamo.New(dynamotest.Start(t).Client(t), dynamo.Config{Table: f.table})
	if err != nil {
		t.Fatal(err)
	}
	limits, err := limiter.NewLimits(limit)
	if err != nil {
		t.Fatal(err)
	}
	some := limit.Params().Capacity / 4
	if f.history == "refilled" {
		some = limit.Params().Capacity / 20 * 19
	}
	var left tokenbucket.Bucket
	for _, take := range []int64{some, 1} {
		op := chronicleOp(limits)
		op.Spends = []limiter.Spend{{Limit: limit.Name, Take: take}}
		ops := []limiter.Op{op}
		if ok, err := store.Take(t.Context(), time.Now(), ops); !ok || err != nil {
			t.Fatal(ok, err)
		}
		left = ops[0].Spends[0].Bucket
	}
	if err := store.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return left
}

// chronicle runs the replicas and returns their records.
func (f *fleet) chronicle(t *testing.T) chronicles {
	t.Helper()
	limit, err := chronicleLimit(f.history)
	if err != nil {
		t.Fatal(err)
	}
	h := chronicles{limit: limit, first: f.begin(t, limit)}
	if err := f.each(t.Context(), func(ctx context.Context, i int) error {
		j := f.job("history", i, 0)
		j.Load, j.Decisions = f.history, f.decisions/int64(len(f.skews))
		return f.live(ctx, j, func(event) bool { return false })
	}); err != nil {
		t.Fatalf("seed %d: %v", f.seed, err)
	}
	var n [4]int
	for i := range f.skews {
		all, err := readChronicle(f.job("history", i, 0).History)
		if err != nil {
			t.Fatal(err)
		}
		for k := range all {
			e := &all[k]
			e.Vague = e.Outcome == admitted && (f.held.lostIn(e.From, e.To) || e.To-e.From >= int64(attempt))
		}
		for k, e := range all {
			n[e.Outcome]++
			if e.Outcome == denied {
				e.Beside = beside(all, k)
				h.denied = append(h.denied, e)
			}
			if e.Outcome == denied || e.Outcome == unavailable {
				continue
			}
			h.granted = append(h.granted, porcupine.Operation{ClientId: i*chronicleCallers + e.Client, Input: e, Call: e.From, Output: e, Return: e.To})
		}
	}
	if n[admitted] == 0 || n[denied] == 0 {
		t.Errorf("seed %d: %d admitted and %d denied: the history shows nothing", f.seed, n[admitted], n[denied])
	}
	t.Logf("%d admitted, %d denied, %d unavailable, %d uncertain in %v; %+v; faults: %v", n[admitted], n[denied], n[unavailable], n[uncertain], f.took, f.stats, f.proxy.Faults())
	return h
}

// bucketModel is one token bucket, never full. Its state is the first balance less the
// takes since. A decision finds that and the refill up to the decision's own time. The
// answer has that time, which must lie in the call. So replicas may decide at times in
// another order than that of their writes. A write of unknown outcome was applied in the
// call, or was not. The moment makes no difference to a bucket that is not full.
func bucketModel(l limiter.Limit, first tokenbucket.Bucket) porcupine.Model {
	p := l.Params()
	nondeterministic := porcupine.NondeterministicModel{
		Init: func() []any { return []any{first} },
		Step: func(state, _, output any) []any {
			b, ok := state.(tokenbucket.Bucket)
			e, okEntry := output.(entry)
			if !ok || !okEntry {
				return nil
			}
			if e.Outcome == uncertain {
				if after, _, ok := decide(p, b, e, e.From/int64(time.Millisecond)); ok {
					return []any{state, after}
				}
				return []any{state}
			}
			at := e.Bucket.Refilled
			after, told, ok := decide(p, b, e, at)
			if at < e.From/int64(time.Millisecond) || at > e.To/int64(time.Millisecond) || !ok || told != e.Bucket.Tokens && !e.Vague {
				return nil
			}
			return []any{after}
		},
		Equal: func(a, b any) bool { return a == b },
	}
	return nondeterministic.ToModel()
}

// decide applies a call at a time. It returns the state after it and the balance of
// the answer.
func decide(p tokenbucket.Params, b tokenbucket.Bucket, e entry, at int64) (after tokenbucket.Bucket, told int64, ok bool) {
	now := b.Refill(p, at)
	if e.Refund == 0 && now.Tokens < e.Take {
		return b, now.Tokens, false
	}
	b.Tokens += e.Refund - e.Take
	return b, now.Tokens + e.Refund - e.Take, true
}
