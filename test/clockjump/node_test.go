package clockjump_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/test/kit/programtest"
	"github.com/ratelimit/ratelimit/test/kit/windows"
)

const (
	day     = 24 * time.Hour
	goesOn  = 2 * time.Second // in which a bucket with ten tokens a second must give as many
	perHour = 100             // of the bucket "slow"
)

// nodeRules have a bucket that no second of a test refills, and one that each second refills.
const nodeRules = `
decision: {on_unavailable: deny}
drain: 0s
domains:
- domain: d
  rules:
  - {match: {slow: "*"}, entity: "slow/{slow}", resource: r, limits: {n: {rate: 100/hour, burst: 1000}}, consume: {n: 1}}
  - {match: {fast: "*"}, entity: "fast/{fast}", resource: r, limits: {n: 10/second}, consume: {n: 1}}
`

var (
	slowLimit = windows.Bucket{Capacity: 1_000_000, Amount: 100_000, Period: time.Hour.Milliseconds()}
	fastLimit = windows.Bucket{Capacity: 10_000, Amount: 10_000, Period: time.Second.Milliseconds()}
)

// node is an embedded store, and what it admits.
type node struct {
	*machine
	*program

	slow, fast *history
}

// goes wants the bucket that refills to be neither full again at once nor stuck.
func (n *node) goes(t *testing.T, when string) {
	t.Helper()
	n.fast.drain(t, n.program)
	began, got := time.Now(), 0
	for got < 10 && time.Since(began) < goesOn {
		if n.fast.ask(t, n.program) {
			got++
		}
	}
	t.Logf("%s: %d of 10 tokens came back in %v", when, got, time.Since(began).Round(time.Millisecond))
	if got < 10 {
		t.Errorf("%s: %d of 10 tokens came back within %v", when, got, goesOn)
	}
}

// A jump of the wall clock mints no token, and stops no refill.
func TestNodeInMemory(t *testing.T) {
	t.Parallel()
	n := start(t, nodeRules)
	for _, to := range []time.Duration{time.Hour, day, -time.Hour, -2 * day, 0} {
		n.jump(t, to)
		got := n.slow.drain(t, n.program)
		t.Logf("at %v: %d admitted", to, got)
		n.goes(t, fmt.Sprintf("at %v", to))
	}
	n.slow.check(t, slowLimit)
	n.fast.check(t, fastLimit)
}

// A program with a data directory does the same, and is then started again on the jumped clock. A
// clock that was set ahead refills for that time then, and no more. One that was set back
// refills nothing, and refills go on.
func TestNodeWithData(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(testing.TB, *program){
		"stopped": func(tb testing.TB, p *program) { tb.Helper(); p.Stop(tb) },
		"killed":  func(_ testing.TB, p *program) { p.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rules := nodeRules + fmt.Sprintf("store: {embedded: {data: %q}}\n", filepath.Join(t.TempDir(), "data"))
			n := start(t, rules)
			config := programtest.WriteFile(t, "again.yaml", rules)
			for _, step := range []struct{ to, ahead time.Duration }{
				{-time.Hour, 0}, {time.Hour, time.Hour}, {90 * time.Minute, 30 * time.Minute}, {-day, 0}, {0, 0},
			} {
				began := time.Now()
				n.jump(t, step.to)
				if got := n.slow.drain(t, n.program); got > 1 {
					t.Errorf("at %v: %d admitted before a restart", step.to, got)
				}
				n.goes(t, fmt.Sprintf("at %v", step.to))
				end(t, n.program)
				n.program = n.serve(t, config)
				got := n.slow.drain(t, n.program)
				most := int((step.ahead+time.Since(began)).Hours()*perHour) + 1
				if t.Logf("started again at %v: %d admitted", step.to, got); got > most {
					t.Errorf("started again at %v: %d admitted, want at most %d", step.to, got, most)
				}
				n.fast = newHistory("fast") // a clock set ahead refills it
				n.goes(t, fmt.Sprintf("started again at %v", step.to))
				n.fast.check(t, fastLimit)
			}
		})
	}
}

// start starts a node, and takes all that the slow bucket has.
func start(t *testing.T, rules string) *node {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a program that -short does not build")
	}
	m := newMachine(t)
	n := &node{machine: m, program: m.serve(t, programtest.WriteFile(t, "ratelimit.yaml", rules)), slow: newHistory("slow"), fast: newHistory("fast")}
	if got := n.slow.drain(t, n.program); got < 1000 || got > 1001 {
		t.Fatalf("the slow bucket had %d tokens, want 1000", got)
	}
	return n
}
