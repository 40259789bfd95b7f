package lane

import (
	"math/rand/v2"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lease"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// now is the time of all plans, Unix ms.
const now = 1_800_000_000_000

// rig is a ledger, and an item with two limits, as its replica last saw it and as it is.
type rig struct {
	*testing.T

	Ledger

	item    *schema.Bucket
	seen    *schema.Bucket // the item as the replica last saw it
	counted int64          // by the item, of both limits together
	doubted int64          // that may not be counted, by the ledger
	random  *rand.Rand
	writes  uint64
}

func newRig(t *testing.T) *rig {
	t.Helper()
	limits, err := limiter.NewLimits(limiter.PerSecond("a", 1000), limiter.PerSecond("b", 1000))
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, random: rand.New(rand.NewPCG(0, 1))} // #nosec G404 -- repeatable
	stage := plan.NewStage(schema.NewBucket(limits, 1, now), now, plan.Options{})
	take := &plan.Request{Limits: limits, Generation: 1, Spends: []plan.Spend{{Limit: "a", Need: 1, Take: 1}}}
	stage.Weigh(take)
	stage.Apply(take)
	r.item = stage.Write(r.id(), 1).After()
	r.seen = r.item
	r.Begin(limits, 1, []int{0, 1})
	return r
}

func (r *rig) id() plan.ID {
	r.writes++
	return plan.ID{Write: schema.NewWriteID(7, r.writes)}
}

// write plans a lease write that has a report, and returns how much it counts.
func (r *rig) write() (*Report, *plan.Write, int64) {
	r.Helper()
	q := plan.LeaseWrite{Replica: 7, Seen: r.seen.Lease(7), Lease: &schema.Lease{Replica: 7, Sequence: uint16(r.writes), Rate: 10, Room: 10}} // #nosec G115 -- few
	if q.Seen != nil && r.random.IntN(2) == 0 {                                                                                               // two returns leave the same item
		q.Lease = nil
	}
	report, amounts := r.Report()
	q.Usage = amounts
	stage := plan.NewStage(r.seen, now, plan.Options{})
	if err := stage.Lease(q); err != nil {
		r.Fatal(err)
	}
	w := stage.Write(r.id(), 1)
	sum := int64(0)
	for _, n := range amounts {
		sum += n
	}
	if report == nil {
		report = &Report{account: r.account}
	}
	r.Sent(report, w)
	return report, w, sum
}

// rests lets the item count the rests.
func (r *rig) rests(over bool) {
	for _, rest := range r.Rests(over) {
		for i := range rest.Spends {
			r.counted += rest.Spends[i].Usage
		}
	}
}

// With any outcome of the lease writes each millitoken is counted once.
func TestEachMillitokenIsCountedOnce(t *testing.T) {
	for seed := range uint64(200) {
		r, random := newRig(t), rand.New(rand.NewPCG(seed, 1)) // #nosec G404 -- repeatable
		r.random = random
		consumed := int64(0)
		for range 100 {
			switch n := random.Int64N(1000) - 300; random.IntN(8) {
			case 0:
				r.Draw([]lease.Draw{{Limit: 0, Take: 5}, {Limit: 1, Take: 7}})
				consumed += 12
			case 1, 2:
				r.Add(random.IntN(2), n)
				consumed += n
			case 3:
				r.rests(random.IntN(4) == 0)
			case 4: // an image of the item comes
				r.see()
			default:
				r.lease(random.IntN(6))
			}
		}
		r.item = r.other() // no write of before can arrive any more
		r.see()
		r.rests(true)
		if off := r.counted - consumed; max(off, -off) > r.doubted || len(r.open) > 0 || r.Pending() {
			t.Fatalf("seed %d: %d millitokens are counted, %d may not be, %d reports open, want %d and none", seed, r.counted, r.doubted, len(r.open), consumed)
		}
	}
}

// lease makes a lease write of an outcome.
func (r *rig) lease(outcome int) {
	r.Helper()
	if outcome == 3 { // another write comes before
		r.item = r.other()
	}
	report, w, sum := r.write()
	switch fits := r.seen == r.item; {
	case outcome == 2: // not sent
		r.Unsent(report)
	case outcome == 4: // it never arrives
	case !fits: // the reply to the refusal shows the item
		r.see()
	default:
		r.item = w.After()
		r.counted += sum
		switch outcome {
		case 0:
			r.Applied(report)
			r.see()
		case 1: // an image comes, and not the reply
			r.see()
		case 5: // neither comes for now
		}
	}
}

// see shows the replica the item.
func (r *rig) see() {
	r.seen = r.item
	r.doubted += r.Saw(r.seen)
}

// other returns the item after an exact write of another replica.
func (r *rig) other() *schema.Bucket {
	r.Helper()
	other := *r.item
	other.Serial++
	return &other
}

// Consumption that a write without a reply may have counted is in the next write too, and the item takes
// one of them. It is no rest before an image shows the outcome.
func TestAReportStaysOpen(t *testing.T) {
	for _, first := range []bool{false, true} {
		r := newRig(t)
		r.Add(0, 100)
		_, w, _ := r.write()
		r.Saw(r.item)
		if rests := r.Rests(true); len(r.open) != 1 || len(rests) > 0 {
			t.Fatalf("%d reports are open, and %v is to be counted alone, before an image shows the outcome", len(r.open), rests)
		}
		r.Add(0, 5)
		_, again, sum := r.write()
		if sum != 105 {
			t.Fatalf("the next write counts %d, want the count that the first may have, and 5", sum)
		}
		image, rest := again.After(), 0
		if first {
			image, rest = w.After(), 1
		}
		if doubted := r.Saw(image); doubted != 0 || r.Open() {
			t.Errorf("%d may not be counted, open: %t; the image shows it", doubted, r.Open())
		}
		if rests := r.Rests(true); len(rests) != rest {
			t.Errorf("got the rests %v, want %d: the first was applied: %t", rests, rest, first)
		}
	}
}

// Of two returns without a reply an image shows which was applied, though both leave no slot.
func TestReturnsWithoutAReply(t *testing.T) {
	r := newRig(t)
	r.lease(0) // it is granted
	returned := func() *plan.Write {
		t.Helper()
		report, amounts := r.Report()
		stage := plan.NewStage(r.seen, now, plan.Options{})
		if err := stage.Lease(plan.LeaseWrite{Replica: 7, Seen: r.seen.Lease(7), Usage: amounts}); err != nil {
			t.Fatal(err)
		}
		w := stage.Write(r.id(), 1)
		r.Sent(report, w)
		return w
	}
	r.Add(0, 100)
	w := returned()
	r.Add(1, 5)
	returned()
	if got := r.Saw(w.After()); got != 0 {
		t.Errorf("%d may not be counted; the image shows that 100 are", got)
	}
	if rests := r.Rests(true); len(rests) != 1 || rests[0].Spends[0] != (plan.Spend{Limit: "b", Usage: 5}) {
		t.Errorf("got the rests %+v, want 5 of limit b", rests)
	}
}

// Drop reports all that it drops: reports that are open, rests, and consumption that
// no write had.
func TestDrop(t *testing.T) {
	r := newRig(t)
	r.Add(0, 100)
	r.write()
	limits, err := limiter.NewLimits(limiter.PerSecond("c", 1))
	if err != nil {
		t.Fatal(err)
	}
	r.Add(0, 5)
	r.Begin(limits, 2, []int{0})
	r.Add(0, -5)
	if lost, doubted := r.Drop(); lost != 10 || doubted != 100 || r.Pending() {
		t.Errorf("lost %d, perhaps %d, and some is left: %t; want 10, 100 and none", lost, doubted, r.Pending())
	}
}

// The consumption of a lease on limits that are replaced is counted under those.
func TestNewLimits(t *testing.T) {
	r := newRig(t)
	r.Add(1, 100)
	limits, err := limiter.NewLimits(limiter.PerSecond("c", 1))
	if err != nil {
		t.Fatal(err)
	}
	r.Begin(limits, 2, []int{0})
	r.Add(0, 5)
	rests := r.Rests(false)
	if len(rests) != 1 || len(rests[0].Spends) != 1 || rests[0].Spends[0] != (plan.Spend{Limit: "b", Usage: 100}) || rests[0].Generation != 1 {
		t.Fatalf("got %+v, want 100 of limit b", rests)
	}
	if rests = r.Rests(true); len(rests) != 1 || rests[0].Spends[0] != (plan.Spend{Limit: "c", Usage: 5}) {
		t.Errorf("got %+v, want 5 of limit c", rests)
	}
}

// The counters of a deleted item are gone with it.
func TestNoItem(t *testing.T) {
	r := newRig(t)
	r.Add(0, 100)
	if got := r.Saw(nil); got != 100 || r.Pending() {
		t.Errorf("%d are gone, and some is to be counted: %t; want 100 and none", got, r.Pending())
	}
}
