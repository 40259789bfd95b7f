package engine_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/engine"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/scripttest"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// place is the part of a table that a bucket is in. It moves between the servers of a cluster, and loses nothing.
type place struct {
	items awsdb.Items

	mu      sync.Mutex
	history uint64
	moving  bool       // it answers no call
	bucket  schema.Key // of the last write
}

// newPlace returns the place of an empty table.
func newPlace(t *testing.T) *place {
	t.Helper()
	return &place{items: scripttest.Items(awsdb.ItemsOf(newServer(t).DB, "limits"), "limits"), history: 1}
}

// move has the place answer nothing for a time, and come back under another history.
func (p *place) move(takes time.Duration) {
	p.set(true)
	time.Sleep(takes)
	p.set(false)
}

func (p *place) set(moving bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.moving && !moving {
		p.history++
	}
	p.moving = moving
}

// left returns the tokens of the bucket now, in millitokens.
func (p *place) left(t *testing.T) int64 {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	out, err := p.items.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("limits"), Key: p.bucket.Attributes()})
	if err != nil {
		t.Fatal(err)
	}
	b, err := schema.ParseBucket("limits", p.bucket, out.Item, nil)
	if err != nil {
		t.Fatal(err)
	}
	return plan.At(b, 0).Tokens(0, time.Now().UnixMilli())
}

// histories are those that a process knows: of the place of the bucket, and of all places together.
type histories struct{ place, all uint64 }

// process is a replica of a fleet whose table moves.
type process struct {
	*engine.Store

	place   *place
	known   atomic.Pointer[histories]
	finding chan struct{} // has room while nothing is found; a lock that time goes on with

	mu     sync.Mutex
	random *rand.Rand
	stall  time.Duration // of a tenth of the messages, at most; 0 = none stalls
	held   time.Duration // of each message
}

var errMoving = &smithy.GenericAPIError{Code: "ThrottlingException", Message: "the place moves"}

// join opens a store of the table.
func (p *place) join(t *testing.T, random *rand.Rand, leases bool) *process {
	t.Helper()
	r := &process{place: p, random: rand.New(rand.NewPCG(random.Uint64(), 1)), finding: make(chan struct{}, 1)} // #nosec G404 -- a test
	r.known.Store(&histories{1, 1})
	opened, err := engine.NewStore(&session{p.items, r, 0}, engine.StoreConfig{
		Buckets: &session{p.items, r, 1}, Table: "limits", Leases: leases, ShardUnits: 1 << 40, Scripts: true, Crowded: true, Generation: 1 << 40,
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Store = opened
	return r
}

// hold has each message that leaves from now on be longer under way.
func (r *process) hold(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = d
}

// delay returns how long a message, or its reply, is under way.
func (r *process) delay() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.held + time.Duration(100+r.random.IntN(2000))*time.Microsecond
	if r.stall > 0 && r.random.IntN(10) == 0 {
		d += time.Duration(r.random.Int64N(int64(r.stall)))
	}
	return d
}

// enter goes on in other histories.
func (r *process) enter(next histories, lost func(schema.Key) bool) {
	r.Renew(&session{r.place.items, r, next.all}, next.all<<40, lost)
	r.known.Store(&next)
}

// find finds the history of the place, unless that was done since had was the newest.
func (r *process) find(had *histories) error {
	r.finding <- struct{}{}
	defer func() { <-r.finding }()
	time.Sleep(r.delay())
	r.place.mu.Lock()
	now, moving := r.place.history, r.place.moving
	r.place.mu.Unlock()
	switch {
	case r.known.Load() != had:
	case moving:
		return errMoving
	case now != had.place:
		r.enter(histories{now, had.all + 1}, nil)
	}
	return nil
}

// elsewhere has the process find that another place has moved.
func (r *process) elsewhere() {
	r.finding <- struct{}{}
	defer func() { <-r.finding }()
	had := r.known.Load()
	r.enter(histories{had.place, had.all + 1}, func(schema.Key) bool { return false })
}

// follow asks for the history every 50 ms, until ctx ends.
func (r *process) follow(ctx context.Context) {
	for ctx.Err() == nil {
		time.Sleep(50 * time.Millisecond)
		_, _ = within(ctx, &session{r.place.items, r, 0}, func() (any, error) { return nil, nil })
	}
}

// session is the calls of a process in some histories; of 0 = in any.
type session struct {
	awsdb.Items

	by *process
	of uint64
}

// answer is what a server says to a call.
type answer[O any] struct {
	out O
	err error
}

// within makes a call. The caller may leave before it has an answer, and it is applied all the same.
func within[O any](ctx context.Context, s *session, call func() (O, error)) (none O, err error) {
	for range 2 {
		known := s.by.known.Load()
		if s.of != 0 && known.all != s.of {
			return none, errHistory
		}
		got := make(chan answer[O], 1)
		go func() {
			time.Sleep(s.by.delay())
			a := serve(s.by.place, known, call)
			time.Sleep(s.by.delay())
			got <- a
		}()
		select {
		case <-ctx.Done():
			return none, ctx.Err()
		case a := <-got:
			if !errors.Is(a.err, errHistory) {
				return a.out, a.err
			}
		}
		if err := s.by.find(known); err != nil { //nolint:contextcheck // a store outlives the call that finds a history
			return none, err
		}
	}
	return none, errHistory
}

// serve applies a call in the history that its process knows.
func serve[O any](p *place, known *histories, call func() (O, error)) (a answer[O]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.moving:
		a.err = errMoving
	case p.history != known.place:
		a.err = errHistory
	default:
		a.out, a.err = call()
	}
	return a
}

func (s *session) Write(ctx context.Context, w *schema.ItemWrite) (map[string]types.AttributeValue, error) {
	return within(ctx, s, func() (map[string]types.AttributeValue, error) {
		s.by.place.bucket = w.Key
		return s.Items.Write(context.WithoutCancel(ctx), w)
	})
}

func (s *session) Transact(ctx context.Context, token string, writes []*schema.ItemWrite) error {
	_, err := within(ctx, s, func() (any, error) { return nil, s.Items.Transact(context.WithoutCancel(ctx), token, writes) })
	return err
}

func (s *session) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return within(ctx, s, func() (*dynamodb.GetItemOutput, error) { return s.Items.GetItem(context.WithoutCancel(ctx), in) })
}

func (s *session) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	return within(ctx, s, func() (*dynamodb.BatchGetItemOutput, error) {
		return s.Items.BatchGetItem(context.WithoutCancel(ctx), in)
	})
}

// moving is how many fleets are tried whose table moves.
const moving = 24

// A table that moves, part by part, gives no token twice: nothing is lost then, late admissions are paid, and a lease that
// a process had before is freed as of the time until which it was served.
func TestATableThatMoves(t *testing.T) {
	n := moving
	if testing.Short() {
		n = 2
	}
	for seed := range n {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { tableMoves(t, rand.New(rand.NewPCG(uint64(seed), 2))) }) // #nosec G115 G404 -- a test
		})
	}
}

func tableMoves(t *testing.T, random *rand.Rand) {
	t.Helper()
	p := newPlace(t)
	room, rate := int64(500+random.IntN(2000)), int64(200+random.IntN(1800))
	limits, err := limiter.NewLimits(limiter.Custom("l", room, rate, time.Second))
	if err != nil {
		t.Fatal(err)
	}
	leases, stall := random.IntN(4) > 0, time.Duration(random.IntN(200))*time.Millisecond
	deadline := []time.Duration{30 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond}[random.IntN(3)]
	fleet := make([]*process, 2+random.IntN(2))
	for i := range fleet {
		fleet[i] = p.join(t, random, leases)
		fleet[i].stall = stall
	}
	var admitted atomic.Int64
	began := time.Now()
	load := func(within, lasts time.Duration) (end func()) {
		ctx, stop := context.WithTimeout(t.Context(), lasts)
		var work sync.WaitGroup
		for _, r := range fleet {
			for range 4 + random.IntN(8) {
				work.Go(func() { r.ask(ctx, limits, within, &admitted) })
			}
			work.Go(func() { r.follow(ctx) })
		}
		return func() { work.Wait(); stop() }
	}
	end := load(deadline, 4*time.Second)
	time.Sleep(700 * time.Millisecond)
	for range 1 + random.IntN(4) {
		if random.IntN(2) == 0 {
			p.move(time.Duration(random.IntN(1500)) * time.Millisecond)
		} else {
			for _, r := range fleet {
				time.AfterFunc(time.Duration(random.IntN(60))*time.Millisecond, r.elsewhere)
			}
		}
		time.Sleep(time.Duration(random.IntN(200)) * time.Millisecond)
	}
	end()
	for _, r := range fleet {
		r.mu.Lock()
		r.stall = 0
		r.mu.Unlock()
	}
	load(time.Second, 2*time.Second)() // what is owed is written meanwhile
	for _, r := range fleet {
		if err := r.Close(t.Context()); err != nil && !errors.Is(err, limiter.ErrUnavailable) {
			t.Error(err)
		}
	}
	time.Sleep(time.Second) // messages whose callers have left
	most := room*limiter.Milli + rate*time.Since(began).Microseconds()/1000
	if got := admitted.Load()*limiter.Milli + p.left(t); got > most {
		t.Errorf("leases %v: %d tokens are admitted and %d millitokens left, %d of %d too many", leases, admitted.Load(), p.left(t), got-most, most)
	}
}

// ask takes tokens, one after the other, until ctx ends, and counts those that it gets.
func (r *process) ask(ctx context.Context, limits *limiter.Limits, within time.Duration, admitted *atomic.Int64) {
	for ctx.Err() == nil {
		waits, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
		ok, err := r.Take(waits, time.Now(), takeOf("hot", limits, 1))
		cancel()
		if ok && err == nil {
			admitted.Add(1)
			time.Sleep(time.Millisecond)
		} else {
			time.Sleep(3 * time.Millisecond)
		}
	}
}

// calm returns a process whose table is there, and what calls it with one op: a change of some tokens.
func calm(t *testing.T) (p *place, r *process, call func(within time.Duration, change func(*limiter.Spend)) (admitted, late bool, err error)) {
	t.Helper()
	p = newPlace(t)
	r = p.join(t, rand.New(rand.NewPCG(1, 1)), false) // #nosec G404 -- a test
	limits, err := limiter.NewLimits(limiter.PerDay("l", fullBucket))
	if err != nil {
		t.Fatal(err)
	}
	call = func(within time.Duration, change func(*limiter.Spend)) (admitted, late bool, err error) {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		ops := takeOf("hot", limits, 0)
		change(&ops[0].Spends[0])
		admitted, err = r.Take(ctx, time.Now(), ops)
		return admitted, ops[0].Late, err
	}
	if admitted, _, err := call(time.Second, taking(1)); !admitted || err != nil {
		t.Fatal(admitted, err)
	}
	time.Sleep(time.Second)
	return p, r, call
}

// taking is a take of some tokens.
func taking(n int64) func(*limiter.Spend) {
	return func(sp *limiter.Spend) { sp.Take = n * limiter.Milli }
}

// closes closes a process, and waits for messages whose callers have left.
func (r *process) closes(t *testing.T) {
	t.Helper()
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
	time.Sleep(time.Hour)
}

// A late admission whose write has no reply when another place moves is booked by the next engine. What an engine
// loses at its end is counted.
func TestAWriteUnderWayWhileThePlacesChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, r, call := calm(t)
		p.set(true)
		r.hold(time.Minute)
		if admitted, late, err := call(10*time.Millisecond, taking(20)); !admitted || !late || err != nil {
			t.Fatalf("admitted %v, late %v, %v; want both", admitted, late, err)
		}
		r.hold(0)
		r.elsewhere()
		time.Sleep(200 * time.Millisecond)
		p.mu.Lock()
		p.moving = false // as it was
		p.mu.Unlock()
		time.Sleep(2 * time.Second)
		if admitted, _, _ := call(time.Second, taking(fullBucket-20)); admitted {
			t.Error("tokens of a late admission are there again")
		}
		if admitted, _, _ := call(time.Second, taking(fullBucket-21)); !admitted {
			t.Error("a late admission is booked twice")
		}
		if got := r.Stats().LostUnknown; got != 20*limiter.Milli {
			t.Errorf("%d millitokens are counted as in doubt, want 20 tokens", got)
		}
		r.closes(t)
	})
}

// A charge that may have been booked is not made again by the next engine.
func TestAChargeInDoubtIsNotMadeAgain(t *testing.T) {
	for after := 90; after < 140; after += 2 {
		synctest.Test(t, func(t *testing.T) {
			p, r, call := calm(t)
			had := p.left(t)
			r.hold(150 * time.Millisecond) // longer than an attempt
			time.AfterFunc(50*time.Millisecond, func() { r.hold(0) })
			time.AfterFunc(time.Duration(after)*time.Millisecond, r.elsewhere)
			_, _, err := call(time.Second, func(sp *limiter.Spend) { sp.Charge = 20 * limiter.Milli })
			time.Sleep(2 * time.Second)
			if got := had - p.left(t); got > 20*limiter.Milli {
				t.Errorf("another place moves after %d ms: %d millitokens are charged, want 20 tokens; %v", after, got, err)
			}
			r.closes(t)
		})
	}
}
