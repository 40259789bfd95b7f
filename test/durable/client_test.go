package durable_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	envoyratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// history is the answers that callers got, over all runs of the program.
type history struct {
	begin time.Time

	mu     sync.Mutex
	given  map[string][]taking // admitted and not given back, by entity and limit
	open   map[string]int64    // of calls without an answer, which may have been admitted
	booked map[string]int64    // charges
	owed   []string            // reservations that no run has settled yet
	held   map[string]taking   // the amounts that they took, by their ids
	denied int
	lost   int // answers

	flights flights
}

func newHistory() *history {
	return &history{begin: time.Now(), given: make(map[string][]taking), open: make(map[string]int64), booked: make(map[string]int64), held: make(map[string]taking)}
}

func (h *history) now() int64 { return time.Since(h.begin).Microseconds() }

// spent is the admitted amount of the ledger.
func (h *history) spent() int64 {
	var n int64
	for _, t := range h.given["ledger/l n"] {
		n += t.amount
	}
	return n
}

// admitted is how many calls were admitted.
func (h *history) admitted() int {
	n := 0
	for _, given := range h.given {
		n += len(given)
	}
	return n
}

// caller asks one life of the program.
type caller struct {
	*history
	r      *rand.Rand
	client rls.RateLimitServiceClient
	gone   bool // a call had no answer: the program was killed
}

// call asks for hits of one descriptor, and returns the time of the call and its
// answer; nil when no answer came.
func (c *caller) call(ctx context.Context, key, value string, hits int64) (taking, *rls.RateLimitResponse) {
	t := taking{from: c.now(), amount: hits}
	response, err := c.client.ShouldRateLimit(ctx, &rls.RateLimitRequest{Domain: "d", Descriptors: []*envoyratelimit.RateLimitDescriptor{{
		Entries:    []*envoyratelimit.RateLimitDescriptor_Entry{{Key: key, Value: value}},
		HitsAddend: wrapperspb.UInt64(uint64(hits)),
	}}})
	t.to = c.now()
	if err != nil {
		c.gone = true
		return t, nil
	}
	return t, response
}

// take asks for a part of a bucket. each is how much of each of its limits a call of n
// hits takes.
func (c *caller) take(ctx context.Context, key, value string, hits int64, each map[string]int64) {
	t, response := c.call(ctx, key, value, hits)
	c.mu.Lock()
	defer c.mu.Unlock()
	for limit, amount := range each {
		bucket := key + "/" + value + " " + limit
		switch {
		case response == nil:
			c.open[bucket] += amount
		case response.GetOverallCode() == rls.RateLimitResponse_OK:
			c.given[bucket] = append(c.given[bucket], taking{t.from, t.to, amount})
		}
	}
	c.count(response)
}

func (c *caller) count(response *rls.RateLimitResponse) {
	if response == nil {
		c.lost++
	} else if response.GetOverallCode() != rls.RateLimitResponse_OK {
		c.denied++
	}
}

// charge charges hits, also beyond the balance.
func (c *caller) charge(ctx context.Context, key, value string, hits int64) {
	_, response := c.call(ctx, key, value, hits)
	c.mu.Lock()
	defer c.mu.Unlock()
	if response == nil {
		c.open[key+"/"+value+" n"] += hits
		c.lost++
	} else {
		c.booked[key+"/"+value+" n"] += hits
	}
}

// reserve reserves, and settles an earlier reservation, which may be of an earlier run.
func (c *caller) reserve(ctx context.Context, value string, hits int64) {
	t, response := c.call(ctx, "work", value, hits)
	id := response.GetDynamicMetadata().GetFields()["reservation_id"].GetStringValue()
	c.mu.Lock()
	if response == nil {
		c.open["work/"+value+" n"] += hits
	} else if id != "" {
		c.held[id], c.owed = t, append(c.owed, id)
	}
	c.count(response)
	var settled string
	if n := len(c.owed); n > 4 {
		i := c.r.IntN(n)
		settled = c.owed[i]
		c.owed = append(c.owed[:i], c.owed[i+1:]...)
	}
	c.mu.Unlock()
	if settled != "" && !c.gone {
		c.settle(ctx, value, settled)
	}
}

// settle settles a reservation to a part of the amount that it took. Without an
// answer that may have been done, so no more than that part counts as taken.
func (c *caller) settle(ctx context.Context, value, id string) {
	c.mu.Lock()
	t := c.held[id]
	c.mu.Unlock()
	t.amount = c.r.Int64N(t.amount + 1)
	_, response := c.call(ctx, "reservation_id", id, t.amount)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.held, id)
	c.given["work/"+value+" n"] = append(c.given["work/"+value+" n"], t)
	c.count(response)
}

// mixed is the load of a caller that uses every bucket.
func (c *caller) mixed(ctx context.Context) {
	switch n := c.r.IntN(23); {
	case n < 8:
		hits := 1 + c.r.Int64N(9)
		c.take(ctx, "hot", "h", hits, map[string]int64{"n": hits})
	case n < 9:
		hits := 1 + c.r.Int64N(9)
		c.take(ctx, "slow", "s", hits, map[string]int64{"n": hits})
	case n < 11:
		value := fmt.Sprint("u", c.r.IntN(20))
		c.take(ctx, "small", value, 1, map[string]int64{"n": 1})
	case n < 13:
		hits := 1 + c.r.Int64N(500_000)
		c.take(ctx, "large", "l", hits, map[string]int64{"n": hits})
	case n < 15:
		hits := 1 + c.r.Int64N(5)
		c.take(ctx, "two", "t", hits, map[string]int64{"n": 1, "m": hits})
	case n < 16:
		c.charge(ctx, "debt", "d", 1+c.r.Int64N(3))
	case n < 18:
		c.reserve(ctx, "w", 1+c.r.Int64N(50))
	case n < 20:
		hits := 1 + c.r.Int64N(9)
		c.take(ctx, "quota", "q", hits, map[string]int64{"n": hits})
	case n < 21:
		c.fly(ctx, fmt.Sprint("s", c.now()/flightsMoveOn.Microseconds()))
	default:
		c.ledger(ctx)
	}
}

// ledger takes from a bucket that hardly refills.
func (c *caller) ledger(ctx context.Context) {
	hits := 1 + c.r.Int64N(20)
	c.take(ctx, "ledger", "l", hits, map[string]int64{"n": hits})
}

// load has callers ask one run, each one call after the other, until it is ended under
// full load: a moment after they have had that many answers, however long these take.
func (h *history) load(ctx context.Context, p *program, r *rand.Rand, callers, answers int, each func(*caller, context.Context), end func()) error {
	conn, err := grpc.NewClient(p.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var g sync.WaitGroup
	var answered atomic.Int64
	enough := make(chan struct{})
	for range callers {
		c := &caller{history: h, r: rand.New(rand.NewPCG(r.Uint64(), 0)), client: rls.NewRateLimitServiceClient(conn)}
		g.Go(func() {
			for ctx.Err() == nil && !c.gone {
				each(c, ctx)
				if !c.gone && answered.Add(1) == int64(answers) {
					close(enough)
				}
			}
		})
	}
	select {
	case <-enough:
		time.Sleep(time.Duration(r.IntN(2000)) * time.Microsecond) // into the program's next step
	case <-time.After(patience):
		err = fmt.Errorf("%d of %d answers within %v\n%s", answered.Load(), answers, patience, p.wrote())
	case <-p.exited:
		err = fmt.Errorf("the program ended by itself: %w\n%s", p.err, p.wrote())
	}
	end()
	cancel()
	g.Wait()
	return errors.Join(err, conn.Close())
}

// dial returns a caller of one life, for calls one after the other.
func (h *history) dial(t *testing.T, p *program) (c *caller, end func()) {
	t.Helper()
	conn, err := grpc.NewClient(p.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	end = func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	return &caller{history: h, r: rand.New(rand.NewPCG(1, 2)), client: rls.NewRateLimitServiceClient(conn)}, end
}
