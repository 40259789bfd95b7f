package lane

import (
	"strconv"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lease"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const testTime = 1_800_000_000_000

// bench is a lane that has seen an item with some tokens of 1,000 a second.
func bench(t *testing.T, tokens, capacity int64) *Lane {
	t.Helper()
	limits, err := limiter.NewLimits(limiter.Custom("l", capacity, 1000, time.Second))
	if err != nil {
		t.Fatal(err)
	}
	l := newLane(&host{cfg: Config{Loop: awsdb.Goroutines{}, Now: func() time.Time { return time.UnixMilli(testTime) }}}, new(set[*Lane]), &Site{}, 0, schema.Key{}, 0)
	l.view.now, l.view.at, l.view.known = testTime, testTime, true
	stage := plan.NewStage(schema.NewBucket(limits, 1, testTime), testTime, plan.Options{})
	r := ofTokens(limits, capacity-tokens)
	stage.Weigh(r.Request)
	stage.Apply(r.Request)
	l.view.state = stage.Write(plan.ID{Write: schema.NewWriteID(1, 1)}, 1).After()
	l.view.quick, l.view.head = plan.At(l.view.state, 0), l.view.state
	l.pace.Reply(4 * time.Millisecond)
	return l
}

// ofTokens returns a request that waits for some tokens.
func ofTokens(limits *limiter.Limits, tokens int64) *Request {
	n := tokens * limiter.Milli
	return &Request{state: waiting, Request: &plan.Request{Limits: limits, Spends: []plan.Spend{{Limit: "l", Need: n, Take: n}}}}
}

// wait puts requests for one token into the queue.
func (l *Lane) wait(n int) {
	for range n {
		l.queue = append(l.queue, ofTokens(l.view.state.Limits, 1))
	}
}

// fly has a write for one token under way.
func (l *Lane) fly() *Request {
	r := ofTokens(l.view.state.Limits, 1)
	r.state = sent
	l.out = append(l.out, &write{batch: batch{write: &plan.Write{}, actors: []*Request{r}, id: plan.ID{Write: schema.NewWriteID(1, uint64(len(l.out))+2)}}})
	return r
}

// The users of an item are those that wrote to it lately, and those that had a lease.
func TestUsers(t *testing.T) {
	l := bench(t, 34, 1000)
	now, ids := l.host.cfg.Now(), []schema.WriteID{schema.NewWriteID(7, 1)}
	l.peers.Observe(nil, 5, now)
	l.peers.Observe(ids, 5, now)
	l.held.watch.Seen(l.host.clocks(now).Mono, []lease.SlotID{{Replica: 7, Seq: 1}, {Replica: 8, Seq: 1}})
	l.held.watch.Seen(l.host.clocks(now).Mono, nil)
	if got := l.lessee.users(now); got != 3 {
		t.Errorf("got %d users, want 7, 8 and this one", got)
	}
}

// A lane leaves to the others their part of the tokens, and the refill of a round trip.
func TestTheLanesPart(t *testing.T) {
	l := bench(t, 34, 1000)
	l.wait(20)
	s := l.estimator.newShare(3, l.view.head, l.queue)
	for i, r := range l.queue[:11] {
		limit, _ := s.Short(r.Request, haste{deniable: true})
		if want := map[bool]string{true: "l"}[i == 10]; limit != want {
			t.Errorf("request %d is short of %q, want %q: a third of 34 tokens less the 4 of a round trip", i, limit, want)
		}
		s.Take(r.Request)
	}
}

// A request is turned away at its arrival when those before it ask for all that is there.
func TestBeyond(t *testing.T) {
	for waiting, want := range map[int]string{33: "", 34: "l"} {
		t.Run(strconv.Itoa(waiting), func(t *testing.T) {
			l := bench(t, 34, 1000)
			l.wait(waiting)
			if got := l.estimator.beyond(ofTokens(l.view.state.Limits, 1), l.queue, 3); got.limit != want || got.byShare {
				t.Errorf("%d requests before: got %+v, want limit %q", waiting, got, want)
			}
		})
	}
}

// A denial at the arrival reports the rest for a smaller request. A request for more than
// there is leaves all to the others.
func TestBeyondTellsWhatIsLeft(t *testing.T) {
	l := bench(t, 34, 1000)
	l.queue = append(l.queue, ofTokens(l.view.state.Limits, 500), ofTokens(l.view.state.Limits, 30))
	for tokens, want := range map[int64]string{4: "", 5: "l"} {
		got := l.estimator.beyond(ofTokens(l.view.state.Limits, tokens), l.queue, 3)
		if got.limit != want || want != "" && got.left != 4*limiter.Milli {
			t.Errorf("%d tokens: got %+v, want limit %q with 4 tokens", tokens, got, want)
		}
	}
}

// A request that will be decided late is turned away at its arrival, if it would be denied.
func TestLacks(t *testing.T) {
	now := time.UnixMilli(testTime)
	for name, tt := range map[string]struct {
		tokens  int64
		trip    time.Duration
		waiting int
		want    string
	}{
		"a reply comes in time":   {160, 10 * time.Millisecond, 500, ""},
		"its own part covers it":  {160, 40 * time.Millisecond, 99, ""},
		"those before have it":    {160, 40 * time.Millisecond, 100, "l"},
		"no tokens are left over": {300, 200 * time.Millisecond, 0, "l"},
	} {
		t.Run(name, func(t *testing.T) {
			l := bench(t, tt.tokens, 1600)
			l.pace = Pace{}
			l.pace.Reply(tt.trip)
			l.wait(tt.waiting)
			r := ofTokens(l.view.state.Limits, 1)
			r.Deadline = now.Add(15 * time.Millisecond)
			if got := l.estimator.lacks(r, now); got.limit != tt.want {
				t.Errorf("got %+v, want limit %q", got, tt.want)
			}
		})
	}
}

// A write that was sent after a request does not count against it, when it is decided late.
func TestBelievedCountsWhatWasBefore(t *testing.T) {
	l := bench(t, 100, 1600)
	l.pace = Pace{}
	first := l.fly()
	for range 8 {
		l.fly()
	}
	last := l.fly()
	one, _ := l.estimator.believed(first, "l")
	ten, _ := l.estimator.believed(last, "l")
	if one-ten != 9*limiter.Milli {
		t.Errorf("got %d for the first of ten, %d for the last, want 9 tokens between", one, ten)
	}
	if waits, _ := l.estimator.believed(ofTokens(l.view.state.Limits, 1), "l"); waits != ten {
		t.Errorf("got %d for one that waits, want %d", waits, ten)
	}
}
