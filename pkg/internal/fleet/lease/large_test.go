package lease_test

import (
	"testing"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lease"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// shortOf returns a rig with a lease and requests for one token, whose stock is spent, and whose
// centre has that many tokens.
func shortOf(t *testing.T, centre int64) *rig {
	t.Helper()
	r := newRig(t)
	r.grant()
	r.load(40, 1)
	r.item.buckets[0] = tokenbucket.Bucket{Tokens: centre * 1000, Refilled: r.now}
	r.touch()
	r.see()
	r.h.Spend([]lease.Draw{{Limit: 0, Take: r.stock() * 1000}})
	return r
}

// The answer to a denied request for much more than the others includes the centre: smaller
// requests get its tokens.
func TestALargeDenialTellsOfTheCentre(t *testing.T) {
	r := shortOf(t, 500)
	r.verdict(600, lease.Denied)
	got := r.h.Report(0, r.now, 600_000, false).Tokens
	if want := r.centre(); got < want || got > want+1000 {
		t.Errorf("%d millitokens are reported, the centre has %d", got, want)
	}
	if got := r.h.Report(0, r.now, 400_000, false).Tokens; got != 399_999 {
		t.Errorf("%d millitokens are reported to a denied request for 400,000, want 1 less", got)
	}
}

// A request for more than the lease and the centre have is denied, also where a write could
// bring something: each would cause one.
func TestNoWriteForWhatIsNotThere(t *testing.T) {
	r := shortOf(t, 500)
	for range 3 {
		r.verdict(501, lease.Denied)
	}
}

// One request beyond all others does not change the usual take: the lease gets more for the
// next of them.
func TestAnOutlierIsNotTheUsual(t *testing.T) {
	r := shortOf(t, 60)
	r.h.Count(r.now, one(1000))
	r.verdict(1, lease.Pull)
}
