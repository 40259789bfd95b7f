package tokenbucket_test

import (
	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// tb is the common part of testing.T and rapid.T that the checks need.
type tb interface {
	Helper()
	Fatalf(format string, args ...any)
}

type opKind uint8

const (
	opRefill opKind = iota
	opTryConsume
	opCharge
	opRefund
	opReparameterize
	opTopUp
)

var opKinds = []opKind{opRefill, opTryConsume, opCharge, opRefund, opReparameterize, opTopUp}

// op is one call, delta milliseconds after the previous one by the caller's clock.
type op struct {
	kind   opKind
	delta  int64
	amount int64              // 0 to MaxAmount
	to     tokenbucket.Params // of opReparameterize
}

// machine runs a bucket beside its model.
type machine struct {
	params tokenbucket.Params
	now    int64
	bucket tokenbucket.Bucket
	model  *model
}

func newMachine(p tokenbucket.Params, now int64) *machine {
	return &machine{params: p, now: now, bucket: tokenbucket.Full(p, now), model: newModel(p, now)}
}

// step runs one operation on both. It compares them, and their answers about a request for the same
// amount.
func (m *machine) step(t tb, o op) {
	t.Helper()
	m.now += o.delta
	before := m.bucket
	got, want := true, true
	switch o.kind {
	case opTryConsume:
		m.bucket, got = m.bucket.TryConsume(m.params, o.amount, m.now)
		want = m.model.tryConsume(o.amount, m.now)
	case opCharge:
		m.bucket = m.bucket.ForceConsume(m.params, o.amount, m.now)
		m.model.forceConsume(o.amount, m.now)
	case opRefund:
		m.bucket = m.bucket.ForceConsume(m.params, -o.amount, m.now)
		m.model.forceConsume(-o.amount, m.now)
	case opReparameterize:
		m.bucket = m.bucket.Reparameterize(m.params, o.to, m.now)
		m.model.reparameterize(o.to, m.now)
		m.params = o.to
	case opTopUp:
		m.bucket, got = m.bucket.TopUp(m.params, o.amount, m.now)
		want = m.model.topUp(o.amount, m.now)
	case opRefill:
		m.bucket = m.bucket.Refill(m.params, m.now)
		m.model.refill(m.now)
	}
	if got != want {
		t.Fatalf("%+v at %d on %+v: granted %v, want %v", o, m.now, before, got, want)
	}
	if want := m.model.bucket(t); m.bucket != want {
		t.Fatalf("%+v at %d on %+v: got %+v, want %+v", o, m.now, before, m.bucket, want)
	}
	m.checkViews(t, o.amount, m.now)
	m.checkViews(t, o.amount, m.now+m.params.Period)
}

// checkViews compares all functions that take nothing.
func (m *machine) checkViews(t tb, amount, now int64) {
	t.Helper()
	checkRetry(t, m.params, m.bucket, amount, now)
	passes := m.model.passes(amount, now)
	if got := m.bucket.WouldRefillSatisfy(m.params, amount, now); got != passes {
		t.Fatalf("WouldRefillSatisfy(%d) at %d of %+v: got %v, want %v", amount, now, m.bucket, got, passes)
	}
	available := floor(m.model.balanceAt(now)).Int64()
	if got := m.bucket.Available(m.params, now); got != available {
		t.Fatalf("Available at %d of %+v: got %d, want %d", now, m.bucket, got, available)
	}
	retry, ok := m.bucket.RetryAfter(m.params, amount, now)
	want := tokenbucket.Status{
		Available:  available,
		RetryAfter: retry,
		Never:      !ok,
		TimeToFull: m.bucket.TimeToFull(m.params, now),
	}
	if !passes {
		want.Deficit = amount - available
		if amount == 0 {
			want.Deficit = tokenbucket.Milli - available
		}
	}
	if diff := cmp.Diff(want, m.bucket.Status(m.params, amount, now)); diff != "" {
		t.Fatalf("Status(%d) at %d of %+v (-want +got):\n%s", amount, now, m.bucket, diff)
	}
}
