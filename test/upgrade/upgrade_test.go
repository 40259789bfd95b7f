package upgrade_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ratelimit/ratelimit/internal/dynamotest"
	"github.com/ratelimit/ratelimit/internal/windows"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/envoytest"
)

const (
	hotRate   = 100 // tokens a second of the keys under load, and their burst
	manyKeys  = 120
	manyBurst = 10
)

// fleet is a table with programs of both versions on it.
type fleet struct {
	*testing.T
	programs

	server *dynamotest.Server
	table  string
	dir    string
	load   *load
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_REGION": "local"} {
		t.Setenv(name, value)
	}
	return &fleet{T: t, programs: buildPrograms(t), server: dynamotest.Start(t), table: dynamotest.TableName(t), dir: t.TempDir()}
}

// config writes a configuration in which the key "shrunk" has some limits.
func (f *fleet) config(name, shrunk, consume string) string {
	f.Helper()
	path := filepath.Join(f.dir, name)
	text := fmt.Sprintf(`
store: {type: dynamodb, dynamodb: {table: %s, region: local, endpoint: %q, create_table: true}}
decision: {timeout: 1s}
domains:
- domain: d
  rules:
  - {match: {leased: "*"}, entity: "leased/{leased}", resource: r, limits: {n: {rate: %d/second, burst: %d}}, consume: {n: hits}, lease: auto}
  - {match: {plain: "*"}, entity: "plain/{plain}", resource: r, limits: {n: {rate: %d/second, burst: %d}}, consume: {n: hits}, lease: none}
  - {match: {many: "*"}, entity: "many/{many}", resource: r, limits: {n: {rate: 1/day, burst: %d}}, consume: {n: hits}, lease: none}
  - {match: {shrunk: "*"}, entity: "shrunk/{shrunk}", resource: r, limits: {%s}, consume: {%s}, lease: none}
`, f.table, f.server.URL, hotRate, hotRate, hotRate, hotRate, manyBurst, shrunk, consume)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		f.Fatal(err)
	}
	return path
}

// TestFleetIsUpgraded: a table that only programs of version 1 used is shared by both versions
// under load, then used by the present one alone, and brought to form 2; a program is
// killed in the middle of that. Clients are let through at most as the limits
// allow, and no use of before is lost.
func TestFleetIsUpgraded(t *testing.T) {
	f := newFleet(t)
	wide := f.config("wide.yaml", "n: {rate: 10/day, burst: 1000}, m: {rate: 10/day, burst: 1000}", "n: hits, m: hits")
	narrow := f.config("narrow.yaml", "n: {rate: 10/day, burst: 300}", "n: hits")
	many := f.seed(wide, narrow)

	f.load = startLoad(t, map[string]time.Duration{"leased": time.Second / (3 * hotRate), "plain": time.Second / (3 * hotRate)})
	killed, stopped := f.load.add(start(t, f.old, narrow)), f.load.add(start(t, f.old, narrow))
	f.pass("version 1 alone", 3*time.Second)
	one := f.load.add(start(t, f.present, narrow))
	f.pass("both versions", 3*time.Second)
	f.refuses(narrow)
	f.load.remove(killed)
	killed.Kill() // its leases stay
	f.pass("one of version 1 is killed", time.Second)
	f.load.remove(stopped)
	stopped.Stop(t)
	two := f.load.add(start(t, f.present, narrow))
	f.pass("the present version alone", 7*time.Second) // the leases of the killed one end

	f.upgrade(narrow)
	many.takeFrom(one, two, func() {
		f.load.remove(one)
		one.Kill()
	})
	one = f.load.add(start(t, f.present, narrow))
	f.pass("items come into form 2", 4*time.Second)
	f.load.end()
	f.checkLoad("leased")
	f.checkLoad("plain")
	many.takeAll(one)
	f.checkShrunk(one, wide)
	f.checkForms()
	f.checkOld(narrow, many.keys[0])
}

// seed has a program of version 1 leave buckets with a use that a smaller capacity carries,
// with a limit that is dormant, and many with three tokens taken.
func (f *fleet) seed(wide, narrow string) *many {
	f.Helper()
	began := time.Now()
	first := start(f.T, f.old, wide)
	if a := first.ask(f.Context(), began, "shrunk", "one", 800); !a.admitted {
		f.Fatal("800 of 1000 tokens are denied")
	}
	first.Stop(f.T)
	second := start(f.T, f.old, narrow)
	if a := second.ask(f.Context(), began, "shrunk", "one", 1); !a.admitted {
		f.Fatal("one of 200 tokens is denied")
	}
	m := newMany(f.T)
	for _, key := range m.keys {
		m.take(second, key, 3)
	}
	second.Stop(f.T)
	return m
}

// pass lets a phase pass under load.
func (f *fleet) pass(phase string, d time.Duration) {
	f.Helper()
	f.load.mu.Lock()
	before := len(f.load.answers)
	f.load.mu.Unlock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-f.Context().Done():
	}
	f.load.mu.Lock()
	defer f.load.mu.Unlock()
	counts := map[string]int{}
	for _, a := range f.load.answers[before:] {
		counts[a.key+", asked"]++
		for what, is := range map[string]bool{"admitted": a.admitted, "by policy": a.policy, "failed": a.failed} {
			if is {
				counts[a.key+", "+what]++
			}
		}
	}
	f.Logf("%s, %v: %v", phase, d, counts)
}

// refuses wants the upgrade refused while a program of version 1 runs.
func (f *fleet) refuses(config string) {
	f.Helper()
	out, code, err := command(f.Context(), f.present, "upgrade", "--config", config, "--yes", "--watch", "2s")
	if err != nil || code != 1 || !strings.Contains(out, "of the version before wrote to this table") {
		f.Fatalf("upgrade beside version 1: exit code %d, %v, want 1:\n%s", code, err, out)
	}
}

// upgrade has the namespace of the table raised, after a dry run.
func (f *fleet) upgrade(config string) {
	f.Helper()
	for _, test := range []struct{ flag, want string }{{"--dry-run", "nothing was changed"}, {"--yes", "done: 1 namespace upgraded"}, {"--yes", "nothing to do"}} {
		out, code, err := command(f.Context(), f.present, "upgrade", "--config", config, test.flag, "--watch", "1s")
		if err != nil || code != 0 || !strings.Contains(out, test.want) {
			f.Fatalf("upgrade %s: exit code %d, %v, want %q:\n%s", test.flag, code, err, test.want, out)
		}
	}
}

// checkLoad holds what clients were let through by the store against the bound of the limit.
func (f *fleet) checkLoad(key string) {
	f.Helper()
	var all []windows.Taking
	var asked, policy int
	var end time.Duration
	for _, a := range f.load.answers {
		if a.key != key {
			continue
		}
		asked, end = asked+1, max(end, a.to)
		if a.policy {
			policy++
		} else if a.admitted {
			all = append(all, windows.Taking{From: a.from.Microseconds(), To: a.to.Microseconds() + 1, Amount: limiter.Milli})
		}
	}
	found, err := windows.Check(limiter.PerSecond("n", hotRate).Params(), all, 0)
	if err != nil {
		f.Fatal(err)
	}
	most := hotRate + int(hotRate*end.Seconds())
	f.Logf("%s: %d calls in %v, %d by policy, %d let through of at most %d; worst window: %v", key, asked, end.Round(time.Millisecond), policy, len(all), most, found.Tightest)
	if found.Broken {
		f.Errorf("%s: more was let through than the limit allows", key)
	}
	if len(all) < most/2 {
		f.Errorf("%s: %d calls were let through, want at least a half of %d", key, len(all), most)
	}
}

// checkShrunk wants the use of a limit to be there that a smaller capacity carries, and that
// of the limit that was dormant.
func (f *fleet) checkShrunk(present *replica, wide string) {
	f.Helper()
	entry := envoytest.Entry{Key: "shrunk", Value: "one"}
	if a := present.ask(f.Context(), time.Now(), "shrunk", "one", 9); !a.admitted { // its item comes into form 2
		f.Error("9 of 199 tokens are denied")
	}
	back := start(f.T, f.present, wide)
	if a := back.ask(f.Context(), time.Now(), "shrunk", "one", 1); !a.admitted {
		f.Error("one token is denied after the capacity is raised")
	}
	for limit, want := range map[string]string{"n": "189", "m": "199"} {
		got, err := back.Available("d", limit, entry)
		if whole, _, _ := strings.Cut(got, "."); err != nil || whole != want {
			f.Errorf("limit %s has %s, %v; want %s: 1000 less all that was taken", limit, got, err, want)
		}
	}
}

// checkForms wants every bucket that was touched in form 2, whole.
func (f *fleet) checkForms() {
	f.Helper()
	out, err := f.server.Client(f.T).Scan(f.Context(), &dynamodb.ScanInput{TableName: aws.String(f.table), ConsistentRead: aws.Bool(true)})
	if err != nil {
		f.Fatal(err)
	}
	buckets := 0
	for _, item := range out.Items {
		if item["b_n_cp"] == nil || item["cv"] == nil {
			continue
		}
		buckets++
		for attr := range item {
			if attr == "rf" || strings.HasPrefix(attr, "ls_") || strings.HasSuffix(attr, "_tk") || strings.HasSuffix(attr, "_h") {
				f.Errorf("an item has %s of form 1: %v", attr, slices.Sorted(maps.Keys(item)))
				break
			}
		}
	}
	if want := manyKeys + 3; buckets != want {
		f.Errorf("there are %d buckets, want %d", buckets, want)
	}
}

// checkOld wants a program of version 1 to deny requests on buckets of form 2, as the docs say.
func (f *fleet) checkOld(config, key string) {
	f.Helper()
	old := start(f.T, f.old, config)
	for what, value := range map[string]string{"leased": "one", "many": key} {
		if a := old.ask(f.Context(), time.Now(), what, value, 1); a.admitted || a.policy || a.failed {
			f.Errorf("version 1 decides on a bucket of form 2: %+v", a)
		}
	}
	metrics, err := old.Metrics()
	if got := metrics[`ratelimit_errors_total{kind="invalid"}`]; err != nil || got != 2 {
		f.Errorf("version 1 counts %v errors, %v; want 2", got, err)
	}
}
