package fleet_test

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/internal/server/fleet"
	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/admin/controlapi"
	"github.com/ratelimit/ratelimit/pkg/api"
)

// start is the begin of a step.
func start() time.Time { return time.Unix(1_800_000_000, 0).UTC() }

// process is a process of a fleet with a clock and counters that a test sets.
type process struct {
	*fleet.Fleet

	now     time.Time
	mu      sync.Mutex // of decided
	decided map[string]int64
	health  admin.State
	events  *fleet.Events
	denied  *controlapi.TopCounter
}

// newProcess starts a process at a time.
func newProcess(now time.Time, change func(*fleet.Config)) *process {
	p := &process{now: now, decided: map[string]int64{"allowed": 0, "denied": 0}, health: admin.State{Ready: true}, denied: controlapi.NewTopCounter()}
	clock := func() time.Time { return p.now }
	p.events = fleet.NewEvents(clock)
	cfg := fleet.Config{
		Host: "host", Version: "v1", Started: now, Now: clock, Events: p.events,
		Decided: func() map[string]int64 {
			p.mu.Lock()
			defer p.mu.Unlock()
			return map[string]int64{"allowed": p.decided["allowed"], "denied": p.decided["denied"]}
		},
		Health: func() admin.State { return p.health },
		Tops:   map[string]*controlapi.TopCounter{api.TopDenied: p.denied},
	}
	if change != nil {
		change(&cfg)
	}
	p.Fleet = fleet.New(cfg)
	return p
}

// decide counts decisions.
func (p *process) decide(allowed, denied int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.decided["allowed"] += allowed
	p.decided["denied"] += denied
}

// A step has the decisions between its begin and its end. The last step is not over.
func TestSteps(t *testing.T) {
	p := newProcess(start().Add(3*time.Second), nil)
	p.decide(5, 1)
	p.now = start().Add(9 * time.Second)
	p.want(t, start(), map[string][]int64{"allowed": {5}, "denied": {1}})
	p.now = start().Add(10 * time.Second)
	p.want(t, start(), map[string][]int64{"allowed": {5, 0}, "denied": {1, 0}})
	p.decide(7, 0)
	p.want(t, start(), map[string][]int64{"allowed": {5, 7}, "denied": {1, 0}})
	p.now = start().Add(45 * time.Second) // it was not asked for some steps
	p.want(t, start(), map[string][]int64{"allowed": {5, 7, 0, 0, 0}, "denied": {1, 0, 0, 0, 0}})
	p.now = start() // the clock went back
	p.decide(1, 1)
	p.now = start().Add(49 * time.Second)
	p.want(t, start(), map[string][]int64{"allowed": {5, 7, 0, 0, 1}, "denied": {1, 0, 0, 0, 1}})
}

// want requires the series of decisions.
func (p *process) want(t *testing.T, begin time.Time, results map[string][]int64) {
	t.Helper()
	got := p.State(t.Context())
	if !got.Begin.Equal(begin) || got.StepSeconds != 10 {
		t.Errorf("steps of %d s since %v, want 10 s since %v", got.StepSeconds, got.Begin, begin)
	}
	if diff := cmp.Diff(results, got.Results); diff != "" {
		t.Errorf("at %v (-want +got)\n%s", p.now, diff)
	}
}

// The series has the last half hour, also after a pause of any length.
func TestHalfHour(t *testing.T) {
	p := newProcess(start(), nil)
	for step := range 1000 {
		p.now = start().Add(time.Duration(step) * fleet.Step)
		p.State(t.Context())
		p.decide(int64(step), 0)
	}
	got := p.State(t.Context())
	want := make([]int64, fleet.Steps)
	for i := range want {
		want[i] = int64(1000 - fleet.Steps + i)
	}
	if diff := cmp.Diff(want, got.Results["allowed"]); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got.Replicas[0].Decisions != 999*1000/2 {
		t.Errorf("%d decisions", got.Replicas[0].Decisions)
	}
	p.now = p.now.Add(24 * time.Hour)
	if got := p.State(t.Context()); len(got.Results["allowed"]) != fleet.Steps || slices.Max(got.Results["allowed"]) != 0 {
		t.Errorf("after a day: %v", got.Results["allowed"])
	}
}

// The answering replica has the state of /readyz.
func TestSelf(t *testing.T) {
	p := newProcess(start(), func(c *fleet.Config) {
		c.Leases, c.Memory = func() int64 { return 3 }, func() int64 { return 1 << 20 }
	})
	p.health = admin.State{
		Reason: "shutting down", Config: admin.ConfigState{Files: []string{"secret.yaml"}, Hash: "abc", LoadedAt: start(), Error: "a.yaml:3", ErrorAt: start().Add(time.Second)},
		Store: &admin.StoreState{Type: "valkey", State: "unavailable", Since: start(), Policy: "deny"},
	}
	want := []api.Replica{{
		ID: p.ID(), Host: "host", Version: "v1", Started: start(), Seen: start(), Here: true, Reason: "shutting down",
		Configuration: api.Configuration{Hash: "abc", LoadedAt: start(), Error: "a.yaml:3", ErrorAt: start().Add(time.Second)},
		Store:         &api.StoreState{Type: "valkey", State: "unavailable", Since: start(), Policy: "deny"}, Leases: 3, MemoryBytes: 1 << 20,
	}}
	if diff := cmp.Diff(want, p.State(t.Context()).Replicas); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Events are bounded in number and length. A flood of one kind hides no other, and repetitions none.
func TestEvents(t *testing.T) {
	p := newProcess(start(), nil)
	p.events.Record(api.EventStart, "first")
	p.events.Record(api.EventStart, "first")
	for i := range 1000 {
		p.now = p.now.Add(time.Second)
		p.events.Record(api.EventBudget, strconv.Itoa(i)+strings.Repeat("é\xff", 10_000))
	}
	got := p.State(t.Context()).Events
	if len(got) != 100 {
		t.Fatalf("%d events", len(got))
	}
	if first := got[99]; first.Kind != api.EventStart || first.Text != "first" || first.Replica != p.ID() || got[98].Kind != api.EventBudget {
		t.Errorf("the oldest event is %+v", first)
	}
	if newest := got[0]; !strings.HasPrefix(newest.Text, "999é") || len(newest.Text) > 300 || !newest.Time.Equal(p.now) {
		t.Errorf("the newest event is %+v", newest)
	}
	p.now = start().Add(25 * time.Hour)
	if got := p.State(t.Context()).Events; len(got) != 0 {
		t.Errorf("a day later: %d events", len(got))
	}
}
