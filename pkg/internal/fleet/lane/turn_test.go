package lane

import (
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// A lane writes nothing while another replica has a turn, once for each turn, and less its round trip.
func TestTurnsOfOthers(t *testing.T) {
	const self, other = 1, 2
	const trip = 4 * time.Millisecond
	at := time.Unix(1, 0)
	turn := func(replica uint32, n uint64) schema.Turn {
		return schema.Turn{ID: schema.NewWriteID(replica, n), Hold: 10 * time.Millisecond}
	}
	var own turns
	for _, step := range []struct {
		name  string
		after time.Duration
		turn  schema.Turn
		held  bool
	}{
		{"none", 0, schema.Turn{}, false},
		{"the own one", 0, turn(self, 7), false},
		{"another one", 0, turn(other, 7), true},
		{"the same", 5 * time.Millisecond, turn(other, 7), true},
		{"the same, over", 6 * time.Millisecond, turn(other, 7), false},
		{"a new one", 6 * time.Millisecond, turn(other, 8), true},
		{"ended by an exact write", 7 * time.Millisecond, schema.Turn{}, false},
		{"the same again", 8 * time.Millisecond, turn(other, 8), false},
	} {
		own.saw(step.turn, self, trip, at.Add(step.after))
		if got := own.held(at.Add(step.after)); got != step.held {
			t.Errorf("%s: held %t, want %t", step.name, got, step.held)
		}
	}
}

// A lane asks for a turn after two exact writes that others came before, and not again before its next one.
func TestATurnIsAskedFor(t *testing.T) {
	limits, err := limiter.NewLimits(limiter.PerSecond("l", 10))
	if err != nil {
		t.Fatal(err)
	}
	state := schema.NewBucket(limits, 1, testTime)
	state.Serial = 1
	next, err := limiter.NewLimits(limiter.PerSecond("l", 20))
	if err != nil {
		t.Fatal(err)
	}
	stage := plan.NewStage(state, testTime, plan.Options{})
	if _, err := stage.Bring(next, 2); err != nil {
		t.Fatal(err)
	}
	exact := stage.Write(plan.ID{Write: schema.NewWriteID(1, 1)}, 1)
	taken, changed := *state, *state
	taken.Serial++
	changed.Shard.Epoch++
	_, l, _, now := fresh(t)
	l.view.state = state
	for _, step := range []struct {
		name    string
		write   *plan.Write // nil: it asks for a turn
		image   *schema.Bucket
		refused bool
		due     bool
	}{
		{"a take came before", exact, &taken, true, false},
		{"another exact write came before", exact, &changed, true, false},
		{"a take came before again", exact, &taken, true, true},
		{"the turn was refused", nil, &changed, true, false},
		{"and a take came before", exact, &taken, true, true},
		{"the turn is there", nil, &changed, false, false},
		{"a take came before all the same", exact, &taken, true, false},
		{"and again", exact, &taken, true, true},
		{"the exact write is applied", exact, &changed, false, false},
	} {
		if step.write == nil {
			l.turns.asked(step.refused)
		} else {
			l.turns.ended(step.write, step.image, step.refused)
		}
		if got := l.turner.turnDue(false, *now); got != step.due {
			t.Errorf("%s: due %t, want %t", step.name, got, step.due)
		}
	}
	l.turns = turns{lost: turnAfter}
	(&turnWrite{by: &l.turner}).lost(true, errSilent, *now)
	if l.turner.turnDue(true, *now) {
		t.Error("a turn without a reply is asked for again at once: in an outage that has no end")
	}
}

// A change of limits waits for the messages under way, and its turn does not: it commutes with them.
func TestATurnComesBesideWritesUnderWay(t *testing.T) {
	for name, tt := range map[string]struct {
		crowded, held bool
		turn          bool
	}{
		"alone":                      {},
		"others write":               {crowded: true, turn: true},
		"another replica has a turn": {crowded: true, held: true},
	} {
		t.Run(name, func(t *testing.T) {
			_, l, _, at := fresh(t)
			now, seen := *at, bench(t, 500, 1000).view
			l.view.known, l.view.state, l.view.quick, l.view.head = true, seen.state, seen.quick, seen.head
			l.pace.Reply(Least)
			if tt.crowded {
				l.peers.Observe(nil, 1, now)
				l.peers.Observe([]schema.WriteID{schema.NewWriteID(7, 1)}, 1, now)
			}
			limits, err := limiter.NewLimits(limiter.Custom("l", 1000, 1001, time.Second))
			if err != nil {
				t.Fatal(err)
			}
			send(t, l)
			l.newer, l.view.sent = wanted{limits, 2}, now
			if tt.held {
				l.turns.until = now.Add(time.Millisecond)
			}
			m := l.plan(now)
			if _, turn := m.(*turnWrite); turn != tt.turn || !turn && m != nil {
				t.Errorf("got the message %T, want a turn: %t", m, tt.turn)
			}
		})
	}
}

// A channel rests after a take that was sent twice. The first of the others is next, so that an item has few
// ids.
func TestChannelsRest(t *testing.T) {
	var c channels
	at := time.Unix(1, 0)
	use := func(n uint64, tries int) int {
		f := &batch{write: &plan.Write{}, copies: copies{sent: at, tries: tries}}
		f.id = plan.ID{Channel: c.next(nil, at), Write: schema.NewWriteID(1, n)}
		c.ended(f, true)
		return f.id.Channel
	}
	for n, step := range []struct{ tries, want int }{{1, 0}, {1, 0}, {2, 0}, {1, 1}, {2, 1}, {3, 2}, {2, 3}, {2, 0}, {1, 1}} {
		at = at.Add(time.Second)
		if got := use(uint64(n+1), step.tries); got != step.want { // #nosec G115 -- few
			t.Fatalf("take %d goes to channel %d, want %d", n, got, step.want)
		}
	}
	if at = at.Add(copyLife); use(30, 1) != 0 {
		t.Error("a channel rests for longer than a copy lives")
	}
	out := make([]message, 0, schema.ChannelCount)
	for i := range schema.ChannelCount - 1 {
		out = append(out, &write{batch: batch{id: plan.ID{Channel: i}}})
	}
	if got := c.next(out, at); got != schema.ChannelCount-1 {
		t.Errorf("channel %d, which has a message under way", got)
	}
}

// A take whose id is in its channel again, behind that of a later one, was applied twice. It is counted once.
func TestALateCopyIsCounted(t *testing.T) {
	var c channels
	end := func(n uint64, applied bool) schema.WriteID {
		id := plan.ID{Channel: 2, Write: schema.NewWriteID(1, n)}
		r := &Request{Request: &plan.Request{Admitted: true, Spends: []plan.Spend{{Limit: "l", Take: int64(n)}}}}
		c.ended(&batch{id: id, write: &plan.Write{}, actors: []*Request{r}}, applied)
		return id.Write
	}
	shows := func(id schema.WriteID) *schema.Bucket {
		b := &schema.Bucket{}
		b.Slots[3][2] = id
		b.Slots[4][1] = schema.NewWriteID(9, 9) // of another replica
		return b
	}
	first := end(5, true)
	if got := c.twice(shows(first)); got != 0 {
		t.Errorf("the last one counts as a copy: %d", got)
	}
	second, refused := end(7, true), end(11, false)
	for _, step := range []struct {
		id   schema.WriteID
		want int64
	}{{second, 0}, {first, 5}, {first, 0}, {refused, 11}, {schema.NewWriteID(1, 99), 0}} {
		if got := c.twice(shows(step.id)); got != step.want {
			t.Errorf("%d millitokens for %x, want %d", got, step.id, step.want)
		}
	}
}
