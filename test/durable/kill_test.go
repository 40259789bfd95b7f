package durable_test

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// late is how far apart two readings of one time may be: the program's are cut to a
// millisecond.
const late = time.Millisecond

// boundOf returns the limit of a bucket of the rules.
func boundOf(t *testing.T, bucket string) bound {
	t.Helper()
	kind, _, _ := strings.Cut(bucket, "/")
	b, ok := map[string]bound{
		"hot": {6000, 3000, time.Second}, "slow": {300, 60, time.Minute}, "small": {3, 3, 7 * time.Second},
		"large": {100_000_000, 1_000_000, time.Second}, "ledger": {10_000_000, 1, 24 * time.Hour}, "work": {20_000, 600, time.Second},
		"quota": {20_000, 1, 24 * time.Hour}, "slots": {1 << 40, 1, time.Second}, // see flights
	}[kind]
	if kind == "two" {
		b, ok = bound{40, 40, time.Second}, true
		if strings.HasSuffix(bucket, " m") {
			b = bound{500, 100, time.Minute}
		}
	}
	if !ok {
		t.Fatalf("no limit of %s", bucket)
	}
	return b
}

// lives runs the program again and again on one directory, and kills it at some moment of
// a load. within is how many kills fell while blocks were open: the run had admitted
// requests, so it had committed a block, and the next run found some open. lost is the sum
// of the tokens that the runs reported as lost. last is the last run, which goes on.
func lives(t *testing.T, h *history, n, callers int, each func(*caller, context.Context)) (within int, lost int64, last *program) {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	dir, config := t.TempDir(), configuration(t, rules)
	last = start(t, dir, config)
	for range n {
		before := h.admitted()
		if err := h.load(t.Context(), last, r, callers, 1+r.IntN(600), each, last.kill); err != nil {
			t.Fatal(err)
		}
		last = start(t, dir, config)
		blocks, tokens := last.found()
		if blocks > 0 && h.admitted() > before {
			within++
		}
		lost += tokens
	}
	return within, lost, last
}

// found returns the program's report about the run before: how many blocks were open,
// and how many tokens are lost with them at most.
func (p *program) found() (blocks int, tokens int64) {
	e, _ := p.said(notInOrder)
	return e.Blocks, e.Tokens + int64(min(e.Blocks, 1)) // it is cut to whole tokens
}

// The program is killed again and again, while callers use buckets of all kinds.
// Reservations are settled in later runs than they were made in, and requests in flight end
// there. Over all runs together no window of any limit has too many admissions.
func TestKilledNeverOverAdmits(t *testing.T) {
	n := kills
	if testing.Short() {
		n = kills / 10
	}
	h := newHistory()
	within, lost, last := lives(t, h, n, 12, func(c *caller, ctx context.Context) { c.mixed(ctx) })
	admitted := h.admitted()
	for bucket, given := range h.given {
		if err := boundOf(t, bucket).check(given, late); err != nil {
			t.Errorf("bucket %s: %v", bucket, err)
		}
	}
	t.Logf("%d kills, %d between a commit and the end of its block; %d admitted, %d denied, %d without an answer", n, within, admitted, h.denied, h.lost)
	if within < n/2 {
		t.Errorf("%d of %d kills between a commit and the end of its block, want half at least", within, n)
	}
	if h.denied == 0 || admitted < 10*n { // of 300 answers a life
		t.Errorf("%d admitted and %d denied: the run shows little", admitted, h.denied)
	}
	h.wantLedger(t, last, lost)
	for _, excess := range h.flights.excess {
		t.Error(excess)
	}
	if h.flights.most < inFlight || h.flights.ended < n/4 {
		t.Errorf("%d at most in flight, and %d ended: the run shows little", h.flights.most, h.flights.ended)
	}
}

// wantLedger requires the ledger to have the expected balance. It may be lower by the
// calls without an answer and by the amount reported as lost.
func (h *history) wantLedger(t *testing.T, p *program, lost int64) {
	t.Helper()
	got, want, open := p.balance(t, "ledger", "l", "n"), 10_000_000-h.spent(), h.open["ledger/l n"]
	t.Logf("the ledger has %v; of %d answered for, %d may be gone without an answer, and %d are said to be lost at most", got, want, open, lost)
	if most := float64(want + 1); got > most || got < float64(want-open-lost)-1 {
		t.Errorf("the ledger: got %v left, want %d to %v", got, want-open-lost, most)
	}
}

// The loss of a bucket after many kills is not more than the reported amount.
func TestKilledLosesNoMoreThanItSays(t *testing.T) {
	n := ledgerKills
	if testing.Short() {
		n = ledgerKills / 10
	}
	h := newHistory()
	_, lost, last := lives(t, h, n, 8, func(c *caller, ctx context.Context) { c.ledger(ctx) })
	h.wantLedger(t, last, lost)
	if lost == 0 || h.spent() == 0 {
		t.Error("nothing was lost, or nothing admitted: the run shows nothing")
	}
	// A share of the bucket as it is, in each life.
	if share := float64(n) * math.Ceil(10_000_000/16); float64(lost) > share {
		t.Errorf("%d lost in %d lives, want no more than a sixteenth of the bucket in each: %v", lost, n, share)
	}
}
