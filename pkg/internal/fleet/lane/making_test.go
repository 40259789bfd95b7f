package lane

import (
	"slices"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// moving returns a lane whose item was split, with the write of its other half under way, and the time.
func moving(t *testing.T) (*Lane, *making, time.Time) {
	t.Helper()
	l := bench(t, 500, 1000)
	now, cfg := l.host.cfg.Now(), &l.host.cfg
	l.host.stopped = t.Context()
	cfg.Budget, cfg.Attempt, cfg.ShardUnits, cfg.Clock = time.Second, 100*time.Millisecond, 1000, awsdb.NewClock(cfg.Now, 0)
	l.host.samples = limiter.NewSampledLog(nil)
	w, err := plan.Split(l.view.state, testTime, 1)
	if err != nil {
		t.Fatal(err)
	}
	l.view.state = w.After()
	l.view.quick, l.view.head, l.view.sent = plan.At(l.view.state, 0), l.view.state, now
	l.wait(1)
	l.queue[0].expires = now.Add(time.Second)
	m, is := l.message(now).(*making)
	if !is {
		t.Fatalf("the lane sends %T, want the other half", m)
	}
	return l, m, now
}

// shows has the lane see an image that a later message brings.
func (l *Lane) shows(image *schema.Bucket, now time.Time) {
	l.events++
	l.saw(image, &copies{asked: l.events, sent: now, at: testTime}, now)
}

// Requests are written while the other half of a split is being made.
func TestRequestsBesideAMaking(t *testing.T) {
	l, _, now := moving(t)
	if !l.starts {
		t.Error("no goroutine steps the lane for the request that waits")
	}
	if l.blocked() {
		t.Error("nothing is written before the end of the message")
	}
	if next, waits := l.keeper.tidy(now); next != nil || waits {
		t.Errorf("the keeper sends %T too, and the lane waits: %t", next, waits)
	}
}

// An item may be deleted and made again while the other half of its split is being made.
func TestAMakingOfAnItemThatIsGone(t *testing.T) {
	for name, image := range map[string]func(*Lane) *schema.Bucket{
		"gone": func(*Lane) *schema.Bucket { return nil },
		"made again": func(l *Lane) *schema.Bucket {
			b := schema.NewBucket(l.view.state.Limits, 1, testTime+1)
			b.Serial, b.Shard.Epoch = 1, l.view.state.Shard.Epoch+5
			return b
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, m, now := moving(t)
			l.shows(image(l), now)
			m.conclude(reply{item: m.put.Item, refused: true}, nil, now)
			if slices.ContainsFunc(l.out, isMaking) {
				t.Error("the half counts as being made")
			}
		})
	}
}

// A half that is there finishes its own split, and not a later one.
func TestAHalfIsOfItsSplit(t *testing.T) {
	l, m, now := moving(t)
	cleared, err := plan.Clear(l.view.state, 1)
	if err != nil {
		t.Fatal(err)
	}
	again, err := plan.Split(cleared.After(), testTime+1000, 1)
	if err != nil {
		t.Fatal(err)
	}
	l.shows(again.After(), now)
	m.conclude(reply{}, nil, now)
	if next, _ := l.keeper.tidy(now); next == nil {
		t.Error("the half of the later split is not made")
	} else if _, is := next.(*making); !is {
		t.Errorf("the lane sends %T, want the half of the later split", next)
	}
}
