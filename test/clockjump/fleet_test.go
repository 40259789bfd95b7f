package clockjump_test

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/aws/smithy-go"

	"github.com/ratelimit/ratelimit/test/envoytest"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
	"github.com/ratelimit/ratelimit/test/kit/windows"
)

// fleetRules have a bucket that is leased, and one that no time of a test refills. Nothing is
// admitted for want of a decision. Calls wait longer than by default: the last tokens of a small limit
// need answers in time, and a busy machine gives few of them in 15 ms.
const fleetRules = `
decision: {on_unavailable: deny, timeout: 100ms}
drain: 0s
domains:
- domain: d
  rules:
  - {match: {hot: "*"}, entity: "hot/{hot}", resource: r, limits: {n: {rate: 50/second, burst: 500}}, consume: {n: 1}}
  - {match: {few: "*"}, entity: "few/{few}", resource: r, limits: {n: 5/day}, consume: {n: 1}}
`

var hotLimit = windows.Bucket{Capacity: 500_000, Amount: 50_000, Period: time.Second.Milliseconds()}

const (
	pace    = 5 * time.Millisecond // between two calls to a replica: together eight times the rate
	perStep = 2 * time.Second      // between two jumps
	soon    = time.Second          // after a jump calls are decided as before
)

// signatureLife is how far the time of a signature may be from that of AWS.
const signatureLife = 5 * time.Minute

// strictDynamoDB returns the endpoint of a DynamoDB that refuses calls whose signature has
// another time than its own, as that of AWS does. DynamoDB Local reads no signature.
func strictDynamoDB(t *testing.T) string {
	t.Helper()
	backend := dynamotest.Start(t).URL
	refused := dynamofake.Fault{Kind: dynamofake.Fail, Err: &smithy.GenericAPIError{Code: "InvalidSignatureException", Message: "Signature not yet current"}}
	refusing := dynamotest.NewProxy(t, backend, func(dynamofake.Call) dynamofake.Fault { return refused })
	door := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		target := backend
		signed, err := time.Parse("20060102T150405Z", r.In.Header.Get("X-Amz-Date"))
		if err != nil || time.Since(signed).Abs() > signatureLife {
			target = refusing.URL
		}
		to, err := url.Parse(target)
		if err != nil {
			t.Error(err)
		}
		r.SetURL(to)
	}, Transport: &http.Transport{MaxIdleConnsPerHost: 64}})
	t.Cleanup(door.Close)
	return door.URL
}

// The replicas of a fleet admit the limit together while the clock of one jumps. Refills go
// on, and calls are decided by the limit.
func TestFleet(t *testing.T) {
	onDynamoDB := func(endpoint string) string {
		return fmt.Sprintf("store: {type: dynamodb, dynamodb: {table: %q, endpoint: %q, create_table: true}}\n", dynamotest.TableName(t), endpoint)
	}
	for _, tt := range []struct {
		name, metrics string // metrics is the begin of the names
		store         func(t *testing.T) string
	}{
		{"DynamoDB Local", "ratelimit_dynamodb_", func(t *testing.T) string { return onDynamoDB(dynamotest.Start(t).URL) }},
		{"DynamoDB that reads signatures", "ratelimit_dynamodb_", func(t *testing.T) string { return onDynamoDB(strictDynamoDB(t)) }},
		{"Valkey", "ratelimit_valkey_", func(t *testing.T) string {
			return fmt.Sprintf("store: {type: valkey, valkey: {table: t, addresses: [%q], create: true}}\n", valkeytest.Start(t).Address)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := startFleet(t, fleetRules+tt.store(t), tt.metrics)
			stop := f.load(t)
			told := 0
			for _, to := range []time.Duration{0, time.Hour, 10 * time.Minute, -10 * time.Minute, 0} {
				if f.step(t, to) {
					told++
				}
			}
			stop()
			f.hot.check(t, hotLimit)
			f.answers(t)
			if told < 3 {
				t.Errorf("%d of 5 times without an outage of the store are too few to tell", told)
			}
			if n := f.jumps.metric(t, tt.metrics+"halts_total"); n == 0 {
				t.Error("no jump stopped the refills until a reply")
			}
		})
	}
}

// fleet is two replicas. The clock of the first jumps.
type fleet struct {
	*machine

	jumps, other *program
	hot          *history
	metrics      string // begin of their names
}

func startFleet(t *testing.T, rules, metrics string) *fleet {
	t.Helper()
	m, config := newMachine(t), programtest.WriteFile(t, "ratelimit.yaml", rules)
	return &fleet{machine: m, jumps: m.serve(t, config), other: newMachine(t).serve(t, config), hot: newHistory("hot"), metrics: metrics}
}

// load asks both replicas for the hot bucket until it is stopped.
func (f *fleet) load(t *testing.T) (stop func()) {
	t.Helper()
	var callers sync.WaitGroup
	done := make(chan struct{})
	for _, p := range []*program{f.jumps, f.other, f.jumps, f.other} { // a call that waits holds up half of them
		callers.Go(func() {
			tick := time.NewTicker(2 * pace)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					f.hot.ask(t, p)
				case <-done:
					return
				}
			}
		})
	}
	end := sync.OnceFunc(func() { close(done); callers.Wait() })
	t.Cleanup(end)
	return end
}

// both returns the sum of a metric of both replicas.
func (f *fleet) both(t *testing.T, name string) float64 {
	t.Helper()
	return f.jumps.metric(t, name) + f.other.metric(t, name)
}

// step has the clock jump, and watches the fleet until the next jump. It reports false where the
// store had an outage, as on a busy machine: then it tells nothing of the clock.
func (f *fleet) step(t *testing.T, at time.Duration) (tells bool) {
	t.Helper()
	outages := f.both(t, f.metrics+"outages_total")
	before := f.both(t, "ratelimit_degraded_total")
	f.jump(t, at)
	from, began := f.hot.now(), time.Now()
	degraded, byPolicy, doubtful := before, time.Duration(0), time.Duration(0) // and until when
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for time.Since(began) < perStep {
		<-tick.C
		if n := f.both(t, "ratelimit_degraded_total"); n > degraded {
			degraded, byPolicy = n, time.Since(began)
		}
		if f.jumps.metric(t, f.metrics+"clock_trusted") == 0 {
			doubtful = time.Since(began)
		}
	}
	admitted, took := f.hot.between(from, f.hot.now()), time.Since(began)
	t.Logf("at %v: %d admitted in %v; %v calls by policy, until %v; untrusted until %v", at, admitted, took.Round(time.Millisecond), degraded-before, byPolicy, doubtful)
	if offset := f.jumps.metric(t, f.metrics+"clock_offset_seconds"); math.Abs(offset) > 2 {
		t.Errorf("at %v: the clock is corrected by %v s", at, offset)
	}
	if f.both(t, f.metrics+"outages_total") > outages {
		return false
	}
	if byPolicy > soon || doubtful > soon {
		t.Errorf("at %v: calls were decided by policy until %v after the jump, and the clock was not trusted until %v, want at most %v", at, byPolicy, doubtful, soon)
	}
	if least := int(took.Seconds() * 50 / 2); admitted < least {
		t.Errorf("at %v: %d admitted, want at least %d", at, admitted, least)
	}
	return true
}

// answers wants a new bucket to be given out, and not more of it. A replica may deny a call that
// comes late for its first look.
func (f *fleet) answers(t *testing.T) {
	t.Helper()
	few, admitted, turn := newHistory("few"), 0, 0
	next := func() bool {
		turn++
		return few.ask(t, []*program{f.jumps, f.other}[turn%2])
	}
	envoytest.Await(t, "a limit of 5 is given out", func() error {
		if next() {
			admitted++
		}
		if admitted < 5 {
			return fmt.Errorf("%d admitted", admitted)
		}
		return nil
	})
	for range 4 {
		if next() {
			t.Error("more than 5 are admitted of a limit of 5")
		}
	}
}
