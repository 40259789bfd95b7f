package lease_test

import (
	"math/rand/v2"
	"sort"
	"strconv"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lease"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// chaos is a few replicas that share one item for a while. There are lost, late and
// crossing messages, pauses, reaps, recalls, charges, refunds and large requests.
type chaos struct {
	random  *rand.Rand
	now     int64
	item    centre
	members []*member
	later   map[int64][]func()
	booked  [][]booking // by limit
	local   int         // admitted by a lease
	ended   int         // leases found over
	reaped  int
	large   int
	unknown int // outcomes that were not known
	stuck   int // most of any replica
}

// booking is a number of millitokens that a caller got, or gave back, at a time.
type booking struct {
	at     int64
	amount int64
}

// member is a replica.
type member struct {
	index    int
	holder   *lease.Holder
	plan     *lease.Plan // in flight
	watch    lease.Watch
	view     lease.View
	paused   int64 // until then
	stood    int64 // ms that the monotonic clock stood still
	behind   int64 // ms that the wall clock is behind
	era      uint64
	reaping  bool
	stuck    int     // wakes in a row that had nothing to do, and were due again at once
	admitted []int64 // of each limit, by the lease, to give back from
}

func newChaos(seed uint64) *chaos {
	c := &chaos{random: rand.New(rand.NewPCG(seed, 2)), now: 1_800_000_000_000, later: map[int64][]func(){}}
	limits := []tokenbucket.Params{
		limiter.Custom("a", 20+c.random.Int64N(200), 20+c.random.Int64N(400), 1_000_000_000).Params(),
		{Capacity: 100_123 + c.random.Int64N(500_000), Amount: 77_001 + c.random.Int64N(300_000), Period: 1777},
	}[:1+c.random.IntN(2)]
	c.item = newCentre(limits)
	c.booked = make([][]booking, len(limits))
	for i := range 2 + c.random.IntN(3) {
		m := &member{index: i, admitted: make([]int64, len(limits))}
		m.holder = lease.New(limits, limiter.LeasePolicy{}, 65_530)
		c.members = append(c.members, m)
	}
	return c
}

func (c *chaos) at(ms int64, do func()) { c.later[c.now+ms] = append(c.later[c.now+ms], do) }

func (c *chaos) one(in int) bool { return c.random.IntN(in) == 0 }

func (c *chaos) delay() int64 {
	if c.one(10) {
		return c.random.Int64N(200)
	}
	return 1 + c.random.Int64N(8)
}

func (c *chaos) clock(m *member) lease.Clock {
	return lease.Clock{Mono: c.now - m.stood, Wall: c.now - m.behind, Era: m.era}
}

// run lets some time pass.
func (c *chaos) run(ms int64) {
	busy := 0
	for end := c.now + ms; c.now < end; c.now++ {
		for _, do := range c.later[c.now] {
			do()
		}
		delete(c.later, c.now)
		if c.now%500 == 0 {
			busy = c.random.IntN(4) // the load changes
		}
		for _, m := range c.members {
			if m.paused > c.now {
				continue
			}
			c.step(m, busy)
		}
	}
}

// over returns the millitokens that a window has beyond the capacity and its refill.
func (c *chaos) over() (limit int, worst int64) {
	for l, p := range c.item.limits {
		all := c.booked[l]
		sort.SliceStable(all, func(i, j int) bool { return all[i].at < all[j].at })
		b := tokenbucket.Full(p, all[0].at)
		for _, x := range all {
			b = b.ForceConsume(p, x.amount, x.at)
			if -b.Tokens > worst {
				limit, worst = l, -b.Tokens
			}
		}
	}
	return limit, worst
}

func TestNoWindowHasMoreThanTheLimit(t *testing.T) {
	runs, total := 60, chaos{}
	if testing.Short() {
		runs = 15
	}
	for seed := range runs {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			c := newChaos(uint64(seed))
			c.run(40_000)
			if l, over := c.over(); over > 0 {
				t.Errorf("limit %d: %d millitokens over", l, over)
			}
			if c.stuck > 5 {
				t.Errorf("%d wakes in a row with nothing to do", c.stuck)
			}
			total.local += c.local
			total.ended += c.ended
			total.reaped += c.reaped
			total.large += c.large
			total.unknown += c.unknown
		})
	}
	t.Logf("%d admitted by leases, %d leases found over, %d reaped, %d large requests, %d unknown outcomes", total.local, total.ended, total.reaped, total.large, total.unknown)
	if total.local < 1000*runs || total.ended == 0 || total.reaped == 0 || total.large == 0 || total.unknown == 0 {
		t.Error("the runs do not reach all that they are to test")
	}
}
