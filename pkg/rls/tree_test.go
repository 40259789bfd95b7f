package rls_test

import (
	"fmt"
	"testing"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// perHour is a descriptor of an envoyproxy/ratelimit file with a limit an hour for each value of
// the key.
func perHour(key string, requests uint32) descriptor.TreeSpec {
	return descriptor.TreeSpec{Path: key, Key: key, Limit: &descriptor.TreeLimitSpec{Unit: "hour", RequestsPerUnit: requests}}
}

// quotaPerHour is perHour in quota_mode.
func quotaPerHour(key string, requests uint32) descriptor.TreeSpec {
	s := perHour(key, requests)
	s.Quota = true
	return s
}

// newTree starts a service with the domain "envoy" of an envoyproxy/ratelimit file.
func newTree(t *testing.T, tree ...descriptor.TreeSpec) *env {
	t.Helper()
	e := newEnv(t, nil)
	e.service.Reload(compile(t, []descriptor.DomainSpec{{Path: "p", Domain: "envoy", Tree: tree}}), nil)
	return e
}

// hits is one descriptor of a call, with one entry.
func hits(key, value, number string) string {
	return fmt.Sprintf(`{"entries":[{"key":%q,"value":%q}]%s}`, key, value, number)
}

const (
	noNumber = ``
	zero     = `,"hitsAddend":"0"`
)

func explicit(n int) string { return fmt.Sprintf(`,"hitsAddend":"%d"`, n) }

// askEnvoy makes a call with descriptors of the domain "envoy".
func (e *env) askEnvoy(t *testing.T, descriptors string) *rlsv3.RateLimitResponse {
	t.Helper()
	answer, err := e.ask(t, `{"domain":"envoy","descriptors":[`+descriptors+`]}`)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// wantCode makes a call and checks the overall code and the remaining tokens of each descriptor.
func (e *env) wantCode(t *testing.T, step, descriptors string, want rlsv3.RateLimitResponse_Code, remaining ...uint32) *rlsv3.RateLimitResponse {
	t.Helper()
	answer := e.askEnvoy(t, descriptors)
	if answer.GetOverallCode() != want {
		t.Errorf("%s: got %v, want %v", step, answer.GetOverallCode(), want)
	}
	for i, want := range remaining {
		if got := answer.GetStatuses()[i].GetLimitRemaining(); got != want {
			t.Errorf("%s: descriptor %d has %d left, want %d", step, i, got, want)
		}
	}
	return answer
}

const (
	isOK   = rlsv3.RateLimitResponse_OK
	isOver = rlsv3.RateLimitResponse_OVER_LIMIT
)

// A gateway that peeks before a request and charges after it, as Envoy Gateway does, gets at most
// the limit and one charge past it.
func TestChargesOfEnvoyFilesCount(t *testing.T) {
	t.Parallel()
	for _, before := range []string{zero, noNumber} {
		for _, old := range []bool{false, true} {
			t.Run(fmt.Sprintf("before %q, process is old %t", before, old), func(t *testing.T) {
				t.Parallel()
				e := newTree(t, perHour("user", 1000))
				if old {
					e.clock.advance(2 * time.Minute)
				}
				charged := 0
				for range 6 {
					if e.askEnvoy(t, hits("user", "u", before)).GetOverallCode() == isOver {
						break
					}
					e.askEnvoy(t, hits("user", "u", explicit(700)))
					charged += 700
				}
				if charged != 1400 {
					t.Errorf("tokens through a limit of 1000: got %d, want 1400: the second charge goes into debt", charged)
				}
			})
		}
	}
}

// A charge answers OVER_LIMIT when it is more than the tokens left, and is booked. A peek is over the limit in debt
// only.
func TestChargeOfAnEnvoyFileAnswers(t *testing.T) {
	t.Parallel()
	e := newTree(t, perHour("user", 1000))
	e.wantCode(t, "a peek", hits("user", "u", zero), isOK, 1000)
	e.wantCode(t, "a charge of all", hits("user", "u", explicit(1000)), isOK, 0)
	answer := e.wantCode(t, "a charge of more than is left", hits("user", "u", explicit(100)), isOver, 0)
	// 100 in debt and 100 needed: 200 of 1000 an hour are 720 s.
	if got := answer.GetStatuses()[0]; got.GetCode() != isOver || got.GetDurationUntilReset().GetSeconds() != 720 {
		t.Errorf("status of the charge: got %v, want OVER_LIMIT and 720s", got)
	}
	if got := answer.GetDynamicMetadata().GetFields()["reason"].GetStringValue(); got != "limit_exhausted" {
		t.Errorf("reason: got %q, want limit_exhausted", got)
	}
	e.wantCode(t, "a peek in debt", hits("user", "u", zero), isOver, 0)
	e.clock.advance(6 * time.Minute) // 100 tokens
	e.wantCode(t, "the debt is paid, nothing is left", hits("user", "u", zero), isOK, 0)
	e.clock.advance(6 * time.Minute)
	e.wantCode(t, "as much as is left", hits("user", "u", explicit(100)), isOK, 0)
	answer = e.wantCode(t, "more than the limit", hits("user", "u", explicit(1001)), isOver, 0)
	if s := answer.GetStatuses()[0].GetDurationUntilReset().GetSeconds(); s < 1 || s > 3600 {
		t.Errorf("a charge above the capacity: got %v, want the time to the next window", answer)
	}
	for range 3 {
		e.wantCode(t, "debt has an end", hits("user", "u", explicit(5000)), isOver, 0)
	}
	e.clock.advance(time.Hour)
	e.wantCode(t, "which is that of the next window", hits("user", "u", zero), isOK, 0)
}

// Without a peek or a count on the same limit within the hour an explicit number is an ordinary take. A denied one
// costs nothing.
func TestTakesOfEnvoyFilesCostNothingDenied(t *testing.T) {
	t.Parallel()
	e := newTree(t, perHour("user", 1000), perHour("other", 10))
	e.wantCode(t, "a take", hits("user", "u", explicit(700)), isOK, 300)
	e.wantCode(t, "a peek on another limit", hits("other", "u", zero), isOK, 10)
	e.wantCode(t, "a take of too much", hits("user", "u", explicit(700)), isOver, 0)
	e.wantCode(t, "which cost nothing", hits("user", "u", explicit(300)), isOK, 0)
	e.wantCode(t, "by another value a peek", hits("user", "v", zero), isOK, 1000)
	e.wantCode(t, "a charge of too much", hits("user", "u", explicit(700)), isOver, 0)
	e.clock.advance(time.Hour + time.Second)
	e.wantCode(t, "an hour later a take of all", hits("user", "w", explicit(1000)), isOK, 0)
	e.wantCode(t, "a take of too much again", hits("user", "w", explicit(100)), isOver, 0)
	e.clock.advance(6 * time.Minute)
	e.wantCode(t, "which cost nothing", hits("user", "w", explicit(100)), isOK, 0)
}

// The time of a peek survives a reload that keeps the limit.
func TestReloadRemembersPeeks(t *testing.T) {
	t.Parallel()
	e := newTree(t, perHour("user", 1000), perHour("other", 10))
	e.clock.advance(time.Hour)
	e.wantCode(t, "a peek", hits("user", "u", zero), isOK, 1000)
	e.service.Reload(compile(t, []descriptor.DomainSpec{{Path: "p", Domain: "envoy", Tree: []descriptor.TreeSpec{
		perHour("new", 10), perHour("user", 1000),
	}}}), &rls.Options{})
	e.wantCode(t, "a charge", hits("user", "u", explicit(1500)), isOver, 0)
	e.wantCode(t, "a take of a new limit", hits("new", "u", explicit(11)), isOver, 0)
	e.wantCode(t, "which cost nothing", hits("new", "u", zero), isOK, 10)
}

func TestOverdrawOfAnInclude(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		overdraw descriptor.Overdraw
		then     rlsv3.RateLimitResponse_Code
		left     uint32
	}{{"never", descriptor.OverdrawNever, isOK, 300}, {"always", descriptor.OverdrawAlways, isOver, 0}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, nil)
			e.service.Reload(compile(t, []descriptor.DomainSpec{{
				Path: "p", Domain: "envoy", Tree: []descriptor.TreeSpec{perHour("user", 1000)}, Overdraw: test.overdraw,
			}}), nil)
			if test.overdraw == descriptor.OverdrawNever {
				e.wantCode(t, "a peek", hits("user", "u", zero), isOK, 1000)
			} else {
				e.clock.advance(2 * time.Hour)
			}
			e.wantCode(t, "the first", hits("user", "u", explicit(700)), isOK, 300)
			e.wantCode(t, "the second", hits("user", "u", explicit(700)), isOver, 0)
			e.wantCode(t, "what is left", hits("user", "u", zero), test.then, test.left)
		})
	}
}

// A call that a charge denies takes nothing for its other descriptors.
func TestChargeThatIsOverTakesNothingElse(t *testing.T) {
	t.Parallel()
	e := newTree(t, perHour("user", 10), perHour("ip", 10), perHour("blocked", 0))
	e.wantCode(t, "a charge that is over, and a take", hits("user", "u", explicit(11))+","+hits("ip", "i", noNumber), isOver)
	e.wantCode(t, "the take cost nothing", hits("ip", "i", zero), isOK, 10)
	e.wantCode(t, "a charge within, and a take", hits("user", "v", explicit(10))+","+hits("ip", "i", noNumber), isOK, 0, 9)
	e.wantCode(t, "a charge within, and a take of too much", hits("user", "w", explicit(3))+","+hits("ip", "i", noNumber)+","+hits("user", "v", noNumber), isOver)
	e.wantCode(t, "the rest", hits("user", "w", zero)+","+hits("ip", "i", zero), isOK, 7, 9)
	e.wantCode(t, "a charge where nothing is admitted", hits("blocked", "x", explicit(1)), isOver)
}

// A descriptor in quota_mode that is over says so. It denies the call only when all others in
// quota_mode are over too.
func TestQuotaMode(t *testing.T) {
	t.Parallel()
	e := newTree(t, quotaPerHour("small", 2), quotaPerHour("large", 5), perHour("ip", 6))
	both := hits("small", "s", noNumber) + "," + hits("large", "l", noNumber)
	all := both + "," + hits("ip", "i", noNumber)
	codes := func(step, descriptors string, overall rlsv3.RateLimitResponse_Code, want ...rlsv3.RateLimitResponse_Code) {
		t.Helper()
		answer := e.wantCode(t, step, descriptors, overall)
		for i, want := range want {
			if got := answer.GetStatuses()[i].GetCode(); got != want {
				t.Errorf("%s: descriptor %d got %v, want %v", step, i, got, want)
			}
		}
	}
	codes("1", all, isOK, isOK, isOK, isOK)
	codes("2", all, isOK, isOK, isOK, isOK)
	codes("3: the small quota is over", all, isOK, isOver, isOK, isOK)
	codes("4: alone it denies", hits("small", "s", noNumber), isOver, isOver)
	codes("5: with another it does not", both, isOK, isOver, isOK)
	codes("6: the last of the large", all, isOK, isOver, isOK, isOK)
	codes("7: both are over", all, isOver, isOver, isOver, isOK)
	e.wantCode(t, "8: the denied call took nothing", hits("ip", "i", zero), isOK, 2)
	codes("9", hits("ip", "i", noNumber)+","+hits("small", "x", noNumber), isOK, isOK, isOK)
	codes("10", hits("ip", "i", noNumber)+","+hits("small", "x", noNumber), isOK, isOK, isOK)
	codes("11: a limit without quota_mode denies", hits("ip", "i", noNumber)+","+hits("large", "y", noNumber), isOver, isOver, isOK)
	e.wantCode(t, "12: and takes nothing of the quota", hits("large", "y", zero), isOK, 5)
}

// Quotas are charged after the response, and are answered like others.
func TestQuotaModeCharges(t *testing.T) {
	t.Parallel()
	e := newTree(t, quotaPerHour("small", 10), quotaPerHour("large", 100))
	charge := func(n int) string { return hits("small", "s", explicit(n)) + "," + hits("large", "l", explicit(n)) }
	answer := e.wantCode(t, "one of two is over", charge(60), isOK, 0, 40)
	if got := answer.GetStatuses()[0].GetCode(); got != isOver {
		t.Errorf("status of the quota that is over: got %v", got)
	}
	e.wantCode(t, "both are over", charge(60), isOver, 0, 0)
}

// A limit in shadow_mode is charged like others, even by a denied call, and the metadata says that
// it would have denied.
func TestChargesOfAShadow(t *testing.T) {
	t.Parallel()
	shadow := perHour("shadow", 10)
	shadow.Shadow = true
	e := newTree(t, shadow, perHour("user", 5), quotaPerHour("quota", 1))
	wouldDeny := func(answer *rlsv3.RateLimitResponse) bool {
		return len(answer.GetDynamicMetadata().GetFields()["shadow"].GetListValue().GetValues()) > 0
	}
	e.wantCode(t, "a peek", hits("shadow", "s", zero)+","+hits("user", "u", zero), isOK, 10, 5)
	if answer := e.wantCode(t, "within", hits("shadow", "s", explicit(6)), isOK); wouldDeny(answer) {
		t.Errorf("a charge within the limit: got %v", answer)
	}
	answer := e.wantCode(t, "past it, in a call that is denied", hits("shadow", "s", explicit(6))+","+hits("user", "u", explicit(6)), isOver)
	if !wouldDeny(answer) {
		t.Errorf("a charge past the limit would not deny: got %v", answer)
	}
	if answer := e.wantCode(t, "in debt", hits("shadow", "s", zero), isOK); !wouldDeny(answer) {
		t.Errorf("a peek at a debt would not deny: got %v", answer)
	}
	e.wantCode(t, "a quota that is over beside a shadow", hits("quota", "q", explicit(2)), isOver)
}

// A charge that is over its limit counts as booked, and its limit counts as the one that denied.
func TestDenialsOfChargesAreCounted(t *testing.T) {
	t.Parallel()
	e := newTree(t, quotaPerHour("small", 2), perHour("user", 5))
	e.askEnvoy(t, hits("user", "u", zero)+","+hits("small", "u", zero))
	e.askEnvoy(t, hits("user", "u", explicit(9)))
	e.askEnvoy(t, hits("small", "s", explicit(9))+","+hits("user", "v", noNumber))
	want := map[string]float64{
		`ratelimit_charges_total{domain="envoy",kind="charge",result="booked",rule="user"}`:               1,
		`ratelimit_charges_total{domain="envoy",kind="charge",result="booked",rule="small"}`:              1,
		`ratelimit_denials_total{domain="envoy",limit="requests",reason="exceeds_capacity",rule="user"}`:  1,
		`ratelimit_denials_total{domain="envoy",limit="requests",reason="exceeds_capacity",rule="small"}`: 1,
		`ratelimit_decisions_total{domain="envoy",result="withheld",rule="user"}`:                         1,
	}
	got := series(t, e.registry)
	for name, want := range want {
		if got[name] != want {
			t.Errorf("%s: got %v, want %v", name, got[name], want)
		}
	}
}
