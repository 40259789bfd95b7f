package fleet_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ratelimit/ratelimit/internal/dynamotest"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// The admissions of several processes on one bucket are those of one token bucket that
// is asked one after the other, with what was lost and refused on the way, and with
// refunds. A denial is by what the calls beside it in its replica leave, as of denialAge ago
// at most. A fleet whose writes are applied twice is found out. The refill does not count; make
// torture has a history in which it does.
func TestLinearizable(t *testing.T) {
	for _, tt := range []struct {
		history, defect string
		want            bool
	}{
		{"taken", "", true}, {"taken and given back", "", true}, {"taken", "a write that was applied before", false},
	} {
		t.Run(tt.history+" "+tt.defect, func(t *testing.T) { checkHistory(t, tt.history, tt.defect, tt.want) })
	}
}

// checkHistory runs a fleet with a defect, "" = none, and wants its history to be that of one
// token bucket, or not to be.
func checkHistory(t *testing.T, history, defect string, want bool) {
	t.Helper()
	f, h := apart(t, scenario{history: history, skews: make([]time.Duration, 3), decisions: 2400, faults: timelyFaults(), defect: defect, patience: 5 * time.Minute})
	limit, err := chronicleLimit(history)
	if err != nil {
		t.Fatal(err)
	}
	f.faults.require(t, f.proxy)
	if got := porcupine.CheckOperationsTimeout(bucketModel(limit), h.granted, 30*time.Second); (got == porcupine.Ok) != want {
		t.Errorf("seed %d: the history of %d calls is linearizable: %v, want %t", f.seed, len(h.granted), got, want)
	}
	for _, e := range h.denied {
		if least := h.least(limit, &e); want && least-e.Beside >= e.Take {
			t.Fatalf("seed %d: a call for %d millitokens was denied while there were %d at least, and calls beside it asked for %d", f.seed, e.Take, least, e.Beside)
		}
	}
}

// apart runs a fleet whose replicas leave the ids of their writes in slots apart.
// Slots are drawn by chance, and two replicas in one may take twice what they send
// again: with few replicas that is rare, and then another fleet is run.
func apart(t *testing.T, s scenario) (*fleet, chronicles) {
	t.Helper()
	for range 12 {
		f := newFleet(t, s)
		h := f.chronicle(t)
		if f.slots(t) == len(s.skews) {
			return f, h
		}
	}
	t.Fatal("replicas shared slots twelve times: they are not drawn by chance")
	return nil, chronicles{}
}

// slots returns in how many slots of the bucket there are ids of writes.
func (f *fleet) slots(t *testing.T) int {
	t.Helper()
	out, err := dynamotest.Start(t).Client(t).Scan(t.Context(), &dynamodb.ScanInput{TableName: &f.table})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, item := range out.Items {
		for i := range 8 {
			if _, ok := item[fmt.Sprint("lw", i)]; ok {
				n++
			}
		}
	}
	return n
}

// chronicles are what replicas wrote down, without what was certainly not applied.
type chronicles struct {
	granted []porcupine.Operation
	denied  []entry
}

// denialAge is how old the state may be that a request is denied by: what other replicas
// gave back since is missing to it.
const denialAge = 100 * time.Millisecond

// least returns the least that the bucket can have had, without the calls beside a denied
// one, when that was decided. The bucket is full before the first call, and never again.
func (h *chronicles) least(l limiter.Limit, d *entry) int64 {
	first := int64(math.MaxInt64)
	for _, o := range h.granted {
		first = min(first, o.Return)
	}
	p := l.Params()
	refilled := tokenbucket.Bucket{Tokens: -p.Capacity, Refilled: first / int64(time.Millisecond)}
	refill := refilled.Refill(p, max(d.Bucket.Refilled, refilled.Refilled)).Tokens - refilled.Tokens
	sum := p.Capacity + refill
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

// beside returns what the calls of a replica asked for that overlap one of them.
func beside(all []entry, k int) int64 {
	sum := int64(0)
	for i := range all {
		if i != k && all[i].From <= all[k].To && all[i].To >= all[k].From {
			sum += all[i].Take
		}
	}
	return sum
}

// chronicle runs the replicas and returns what they wrote down.
func (f *fleet) chronicle(t *testing.T) chronicles {
	t.Helper()
	if err := f.each(t.Context(), func(ctx context.Context, i int) error {
		j := f.job("history", i, 0)
		j.Load, j.Decisions = f.history, f.decisions/int64(len(f.skews))
		return f.live(ctx, j, func(event) bool { return false })
	}); err != nil {
		t.Fatalf("seed %d: %v", f.seed, err)
	}
	var h chronicles
	var n [4]int
	for i := range f.skews {
		all, err := readChronicle(f.job("history", i, 0).History)
		if err != nil {
			t.Fatal(err)
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
			e.Vague = e.Outcome == admitted && f.held.lostIn(e.From, e.To)
			h.granted = append(h.granted, porcupine.Operation{ClientId: i*chronicleCallers + e.Client, Input: e, Call: e.From, Output: e, Return: e.To})
		}
	}
	if n[admitted] == 0 || n[denied] == 0 {
		t.Errorf("seed %d: %d admitted and %d denied: the history shows nothing", f.seed, n[admitted], n[denied])
	}
	t.Logf("%d admitted, %d denied, %d unavailable, %d uncertain in %v; %+v; faults: %v", n[admitted], n[denied], n[unavailable], n[uncertain], f.took, f.stats, f.proxy.Faults())
	return h
}

// bucketModel is one token bucket, full in the beginning. Its state is what it held
// when it was last full, less what was taken since: what a decision finds is that
// with the refill up to the decision's own time, which the answer tells, and which
// must lie in the call. So replicas may decide at times in another order than that of
// their writes. What is not known to be applied was applied in the call, or was not; when,
// makes no difference to a bucket that is not full.
func bucketModel(l limiter.Limit) porcupine.Model {
	p := l.Params()
	nondeterministic := porcupine.NondeterministicModel{
		Init: func() []any { return []any{tokenbucket.Bucket{Tokens: p.Capacity}} },
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

// decide does at a time what a call asks for. It returns the state after it and the
// balance that the call is told.
func decide(p tokenbucket.Params, b tokenbucket.Bucket, e entry, at int64) (after tokenbucket.Bucket, told int64, ok bool) {
	now := b.Refill(p, at)
	if now.Tokens == p.Capacity {
		b = now
	}
	if e.Refund == 0 && now.Tokens < e.Take {
		return b, now.Tokens, false
	}
	b.Tokens += e.Refund - e.Take
	return b, now.Tokens + e.Refund - e.Take, true
}
