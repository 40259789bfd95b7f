package rls_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/reservation"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// reserving are rules that reserve and settle, in two namespaces.
func reserving(tb testing.TB) []descriptor.DomainSpec {
	tb.Helper()
	own := limits(tb, limiter.PerDay("tpm", 1000), limiter.PerDay("usd", 1_000_000), limiter.PerDay("rpm", 5000))
	spec := func(domain, namespace string) descriptor.DomainSpec {
		reserved, requests := takes("key/{key}", "gpt", own, "tpm"), takes("key/{key}", "gpt", own)
		reserved[0].Reserve, reserved[0].Parents = true, []string{"org/{org}"}
		requests[0].Consume = []descriptor.ConsumeSpec{{Limit: "rpm", Constant: limiter.Milli}}
		requests[0].Parents = reserved[0].Parents
		money := takes("key/{key}", "gpt", own)
		money[0].Reserve, money[0].Consume = true, []descriptor.ConsumeSpec{{Limit: "usd", PerHit: 2500}}
		guessed := takes("key/{key}", "gpt", own, "tpm")
		guessed[0].Reserve = true
		guessed[0].Consume[0].Estimate = &descriptor.EstimateSpec{Min: 10 * limiter.Milli, Max: 400 * limiter.Milli}
		return descriptor.DomainSpec{Domain: domain, Namespace: namespace, Rules: []descriptor.RuleSpec{
			{Name: "reserve", Match: append(match("key", "*"), descriptor.MatchSpec{Key: "org", Value: "*", Optional: true}), Takes: append(requests, reserved...)},
			{Name: "money", Match: match("key", "*", "meter", "usd"), Takes: money},
			{Name: "guess", Match: match("key", "*", "meter", "guess"), Takes: guessed},
			{Name: "settle", Match: match("reservation_id", "*"), Settle: []descriptor.ConsumeSpec{{Limit: "tpm", PerHit: limiter.Milli}}},
			{Name: "input", Match: match("reservation_id", "*", "kind", "input"), Settle: []descriptor.ConsumeSpec{{Limit: "usd", PerHit: 2500}}},
			{Name: "output", Match: match("reservation_id", "*", "kind", "output"), Settle: []descriptor.ConsumeSpec{{Limit: "usd", PerHit: 10_000}}},
		}}
	}
	return []descriptor.DomainSpec{spec("llm", ""), spec("other", "other")}
}

// key is a key of reservations made of one byte.
func key(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }

func keyring(tb testing.TB, keys ...[]byte) *reservation.Keyring {
	tb.Helper()
	ring, err := reservation.NewKeyring(keys...)
	if err != nil {
		tb.Fatal(err)
	}
	return ring
}

// replicas are services on one store, with clocks and keys of their own.
func replicas(t *testing.T, n int) []*env {
	t.Helper()
	store := embedded.New(embedded.Config{SweepInterval: time.Hour}) // not by the clock of the machine
	all := make([]*env, 0, n)
	for range n {
		all = append(all, newReplica(t, store, keyring(t, key(1))))
	}
	t.Cleanup(func() {
		if err := store.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return all
}

func newReplica(t *testing.T, store limiter.Store, ring *reservation.Keyring) *env {
	t.Helper()
	l, err := limiter.New(limiter.Config{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	books, err := reservation.NewLedger(reservation.LedgerConfig{Limiter: l, Local: true})
	if err != nil {
		t.Fatal(err)
	}
	e := newEnv(t, func(c *rls.Config) {
		c.Decider, c.Settler, c.Keyring, c.Lifetime = books, books, ring, 10*time.Minute
	})
	e.service.Reload(compile(t, reserving(t)), nil)
	t.Cleanup(func() {
		if err := books.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

// call makes a call in a domain with descriptors in JSON.
func (e *env) call(t *testing.T, domain string, descriptors ...string) *rlsv3.RateLimitResponse {
	t.Helper()
	got, err := e.ask(t, fmt.Sprintf(`{"domain":%q,"descriptors":[%s]}`, domain, strings.Join(descriptors, ",")))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func addend(n int) string { return fmt.Sprintf(`"hitsAddend":"%d"`, n) }

func negative(n int) string { return addend(n) + `,"isNegativeHits":true` }

// reserve reserves hits, and returns the id.
func (e *env) reserve(t *testing.T, hits int, pairs ...string) string {
	t.Helper()
	got := e.call(t, "llm", descriptorJSON(addend(hits), pairs...))
	if got.GetOverallCode() != rlsv3.RateLimitResponse_OK {
		t.Fatalf("reserving %d was denied: %v", hits, got)
	}
	fields := got.GetDynamicMetadata().GetFields()
	if n := fields["reserved"].GetNumberValue(); n != float64(hits) {
		t.Fatalf("reserved: got %v, want %d", n, hits)
	}
	id := fields["reservation_id"].GetStringValue()
	if id == "" {
		t.Fatalf("there is no reservation_id in %v", got)
	}
	return id
}

// settle settles in a domain, and returns the result.
func (e *env) settle(t *testing.T, domain, more, id string) string {
	t.Helper()
	got := e.call(t, domain, descriptorJSON(more, "reservation_id", id))
	if got.GetOverallCode() != rlsv3.RateLimitResponse_OK {
		t.Errorf("a settlement was denied: %v", got)
	}
	all := got.GetDynamicMetadata().GetFields()["settlements"].GetListValue().GetValues()
	if len(all) != 1 {
		t.Fatalf("settlements: got %v, want one", all)
	}
	fields := all[0].GetStructValue().GetFields()
	if rule := fields["rule"].GetStringValue(); rule != "settle" {
		t.Errorf("rule: got %q, want settle", rule)
	}
	return fields["result"].GetStringValue()
}

// left returns the whole tokens of tpm that a key has left. It is the tightest limit of its rule.
func (e *env) left(t *testing.T, name string) uint32 {
	t.Helper()
	return e.call(t, "llm", descriptorJSON(addend(0), "key", name)).GetStatuses()[0].GetLimitRemaining()
}

// A reservation of one replica can be settled at another one, once.
func TestSettleAtAnotherReplica(t *testing.T) {
	all := replicas(t, 2)
	id := all[0].reserve(t, 600, "key", "k")
	if got := all[1].left(t, "k"); got != 400 {
		t.Errorf("left after 600 were reserved: got %d, want 400", got)
	}
	for i, want := range []string{"settled", "repeated", "repeated"} {
		if got := all[(i+1)%2].settle(t, "llm", addend(150+i), id); got != want {
			t.Errorf("settlement %d: got %q, want %q", i, got, want)
		}
		if got := all[i%2].left(t, "k"); got != 850 {
			t.Errorf("left after settlement %d to 150: got %d, want 850", i, got)
		}
	}
}

// The request itself stays counted: only the reserved amounts are settled.
func TestSettleLeavesTheRest(t *testing.T) {
	e := replicas(t, 1)[0]
	id := e.reserve(t, 600, "key", "k", "org", "o")
	e.settle(t, "llm", addend(0), id)
	got := e.call(t, "llm", descriptorJSON(addend(0), "key", "k", "org", "o"))
	if n := got.GetStatuses()[0].GetLimitRemaining(); n != 1000 {
		t.Errorf("left of tpm: got %d, want 1000", n)
	}
}

// Every reservation is settled once, even by many calls at many replicas at the same time.
func TestOneSettlementWins(t *testing.T) {
	all := replicas(t, 2)
	for i := range 1000 {
		id := all[i%2].reserve(t, 600, "key", "k")
		results := make([]string, 2)
		var group sync.WaitGroup
		for j, e := range all {
			group.Go(func() { results[j] = e.settle(t, "llm", addend(0), id) })
		}
		group.Wait()
		if n := strings.Count(strings.Join(results, " "), "settled"); n != 1 {
			t.Fatalf("reservation %d: got %q, want one settled", i, results)
		}
		if got := all[0].left(t, "k"); got != 1000 {
			t.Fatalf("reservation %d: left %d, want 1000", i, got)
		}
	}
}

func TestSettlementsRefused(t *testing.T) {
	all := replicas(t, 1)
	e := all[0]
	id := e.reserve(t, 600, "key", "k")
	altered := []byte(id)
	if middle := &altered[len(id)/2]; *middle == 'A' {
		*middle = 'B'
	} else {
		*middle = 'A'
	}
	refused := []struct {
		name, domain, more, id, want string
	}{
		{"no number", "llm", "", id, "no_number"},
		{"a refund", "llm", negative(5), id, "is_refund"},
		{"invented", "llm", addend(5), "not-an-id", "malformed"},
		{"empty", "llm", addend(5), "", "malformed"},
		{"huge", "llm", addend(5), strings.Repeat("A", 100_000), "malformed"},
		{"cut", "llm", addend(5), id[:len(id)-4], "forged"},
		{"altered", "llm", addend(5), string(altered), "forged"},
		{"of another namespace", "other", addend(5), id, "wrong_namespace"},
	}
	for _, test := range refused {
		if got := e.settle(t, test.domain, test.more, test.id); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
	e.clock.advance(10 * time.Minute)
	if got := e.settle(t, "llm", addend(5), id); got != "expired" {
		t.Errorf("after its time: got %q, want expired", got)
	}
	if got := e.left(t, "k"); got != 406 { // the refill of 10 minutes at 1000 a day
		t.Errorf("left: got %d, want 406: nothing was settled", got)
	}
	want := map[string]float64{}
	for _, test := range refused {
		want[fmt.Sprintf("ratelimit_settlements_total{domain=%q,result=%q,rule=\"settle\"}", test.domain, test.want)]++
	}
	want[`ratelimit_settlements_total{domain="llm",result="expired",rule="settle"}`] = 1
	if diff := cmp.Diff(want, seriesOf(t, e, "ratelimit_settlements_total")); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}

// seriesOf returns the series of one metric.
func seriesOf(t *testing.T, e *env, name string) map[string]float64 {
	t.Helper()
	all := series(t, e.registry)
	maps.DeleteFunc(all, func(series string, _ float64) bool { return !strings.HasPrefix(series, name+"{") })
	return all
}

// A denied request reserves nothing, so there is nothing to settle. Where it can never be admitted,
// the answer says so and names no time.
func TestDeniedReservation(t *testing.T) {
	e := replicas(t, 1)[0]
	for _, test := range []struct {
		hits   int
		reason string
		retry  bool
	}{
		{900, "limit_exhausted", true}, {1001, "exceeds_capacity", false}, {1_000_000_001, "exceeds_capacity", false},
	} {
		e.reserve(t, 101, "key", strconv.Itoa(test.hits))
		got := e.call(t, "llm", descriptorJSON(addend(test.hits), "key", strconv.Itoa(test.hits)))
		fields := got.GetDynamicMetadata().GetFields()
		if got.GetOverallCode() != rlsv3.RateLimitResponse_OVER_LIMIT || fields["reason"].GetStringValue() != test.reason {
			t.Errorf("%d hits: got %v, want a denial for %s", test.hits, got, test.reason)
		}
		if retry := len(got.GetResponseHeadersToAdd()) > 0; retry != test.retry {
			t.Errorf("%d hits: retry-after is sent: %v, want %v", test.hits, retry, test.retry)
		}
		if fields["reserved"] != nil || fields["reservation_id"] != nil {
			t.Errorf("%d hits: a denial carries a reservation: %v", test.hits, fields)
		}
		if got := e.left(t, strconv.Itoa(test.hits)); got != 899 {
			t.Errorf("%d hits: left %d, want 899", test.hits, got)
		}
	}
}

// Descriptors of one id settle together, each with its own weight.
func TestSettleInParts(t *testing.T) {
	e := replicas(t, 1)[0]
	id := e.reserve(t, 1000, "key", "k", "meter", "usd") // 2500 usd
	part := func(kind, more string) string { return descriptorJSON(more, "reservation_id", id, "kind", kind) }
	got := e.call(t, "llm", part("input", addend(100)), part("output", "")) // one number is missing
	for _, v := range got.GetDynamicMetadata().GetFields()["settlements"].GetListValue().GetValues() {
		if result := v.GetStructValue().GetFields()["result"].GetStringValue(); result != "no_number" {
			t.Errorf("one number missing: got %q, want no_number for both", result)
		}
	}
	got = e.call(t, "llm", part("input", addend(100)), part("output", addend(40)))
	for _, v := range got.GetDynamicMetadata().GetFields()["settlements"].GetListValue().GetValues() {
		if result := v.GetStructValue().GetFields()["result"].GetStringValue(); result != "settled" {
			t.Errorf("settlement: got %q, want settled for both", result)
		}
	}
	look := e.call(t, "llm", descriptorJSON(addend(0), "key", "k", "meter", "usd"))
	if n := look.GetStatuses()[0].GetLimitRemaining(); n != 1_000_000-250-400 {
		t.Errorf("usd left: got %d, want %d", n, 1_000_000-250-400)
	}
}

// A call without a number reserves by earlier settlements. That is the most while there are few,
// and later the amount that most requests used.
func TestEstimate(t *testing.T) {
	e := replicas(t, 1)[0]
	ask := descriptorJSON("", "key", "k", "meter", "guess")
	var reserved float64
	for range 20 {
		fields := e.call(t, "llm", ask).GetDynamicMetadata().GetFields()
		if e.settle(t, "llm", addend(64), fields["reservation_id"].GetStringValue()) != "settled" {
			t.Fatal("not settled")
		}
		if reserved == 0 && fields["reserved"].GetNumberValue() != 400 {
			t.Errorf("while nothing is known: got %v reserved, want 400", fields["reserved"])
		}
		reserved = fields["reserved"].GetNumberValue()
		e.clock.advance(time.Hour) // refills the amounts used
	}
	if reserved < 64 || reserved > 72 {
		t.Errorf("after settlements to 64: got %v reserved, want 64 to 72", reserved)
	}
	other := e.call(t, "llm", descriptorJSON("", "key", "other", "meter", "guess")).GetDynamicMetadata().GetFields()["reserved"]
	if other.GetNumberValue() != 400 {
		t.Errorf("of another key: got %v reserved, want 400", other)
	}
}

// A refund and a charge of one call settle too. The charge is never refused, and counts for the
// estimate.
func TestSettleByRefundAndCharge(t *testing.T) {
	e := replicas(t, 1)[0]
	e.reserve(t, 1000, "key", "k")
	got := e.call(t, "llm", descriptorJSON(negative(1000), "key", "k"), descriptorJSON(addend(1500), "key", "k"))
	if got.GetOverallCode() != rlsv3.RateLimitResponse_OK {
		t.Errorf("the charge was refused: %v", got)
	}
	denied := e.call(t, "llm", descriptorJSON(addend(1), "key", "k"))
	if denied.GetOverallCode() != rlsv3.RateLimitResponse_OVER_LIMIT {
		t.Errorf("in debt of 500: got %v, want a denial", denied)
	}
	for range 8 {
		e.call(t, "llm", descriptorJSON(negative(64), "key", "g", "meter", "guess"), descriptorJSON(addend(64), "key", "g", "meter", "guess"))
	}
	fields := e.call(t, "llm", descriptorJSON("", "key", "g", "meter", "guess")).GetDynamicMetadata().GetFields()
	if n := fields["reserved"].GetNumberValue(); n < 64 || n > 72 {
		t.Errorf("after settlements to 64: got %v reserved, want 64 to 72", n)
	}
}

// Keys change while ids are in use: a replica with both keys opens both ids.
func TestKeysRotate(t *testing.T) {
	store := embedded.New(embedded.Config{SweepInterval: time.Hour}) // not by the clock of the machine
	defer func() { _ = store.Close(t.Context()) }()
	older, newer := newReplica(t, store, keyring(t, key(1), key(2))), newReplica(t, store, keyring(t, key(2), key(1)))
	gone := newReplica(t, store, keyring(t, key(2)))
	first, second := older.reserve(t, 10, "key", "a"), newer.reserve(t, 10, "key", "b")
	for _, test := range []struct {
		name string
		at   *env
		id   string
		want string
	}{
		{"the old key, after it was removed", gone, first, "forged"},
		{"the old key at a replica that seals with the new", newer, first, "settled"},
		{"the new key at a replica that seals with the old", older, second, "settled"},
	} {
		if got := test.at.settle(t, "llm", addend(0), test.id); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

// Names that are too long for an id are limited like others, and only get no id.
func TestReservationTooLong(t *testing.T) {
	e := replicas(t, 1)[0]
	name := strings.Repeat("n", 4000)
	fields := e.call(t, "llm", descriptorJSON(addend(100), "key", name)).GetDynamicMetadata().GetFields()
	if fields["reserved"].GetNumberValue() != 100 || fields["reservation_id"] != nil {
		t.Errorf("got %v, want 100 reserved and no id", fields)
	}
	if got := e.left(t, name); got != 900 {
		t.Errorf("left: got %d, want 900", got)
	}
	if diff := cmp.Diff(map[string]float64{`ratelimit_reservations_total{result="too_long"}`: 1}, seriesOf(t, e, "ratelimit_reservations_total")); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}

// Without a settler nothing is settled, and no id is made.
func TestNoSettler(t *testing.T) {
	e := newEnv(t, nil)
	e.service.Reload(compile(t, reserving(t)), nil)
	fields := e.call(t, "llm", descriptorJSON(addend(100), "key", "k")).GetDynamicMetadata().GetFields()
	if fields["reserved"].GetNumberValue() != 100 || fields["reservation_id"] != nil {
		t.Errorf("got %v, want 100 reserved and no id", fields)
	}
	if got := e.settle(t, "llm", addend(5), "x"); got != "not_available" {
		t.Errorf("settlement: got %q, want not_available", got)
	}
}

// No two ids are equal, and none shows a name.
func TestIDsAreOpaque(t *testing.T) {
	e := replicas(t, 1)[0]
	seen := map[string]bool{}
	for range 100 {
		id := e.reserve(t, 1, "key", "secretkey")
		if seen[id] || strings.Contains(id, "secretkey") {
			t.Fatalf("id %q was seen before, or shows a name", id)
		}
		seen[id] = true
	}
	if diff := cmp.Diff(100, len(seen)); diff != "" {
		t.Error(diff)
	}
}
