package engine_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/catalog"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/engine"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

const (
	replicas   = 3
	callers    = 4 // of a replica
	fullBucket = 200
	latency    = time.Millisecond // of a message, each way
)

// server is a table in memory that can come back with an older state, under another history.
type server struct {
	*dynamofake.DB

	mu      sync.Mutex
	history uint64
}

var (
	errHistory = &smithy.GenericAPIError{Code: "TransactionConflictException", Message: "another history"}
	errBroken  = errors.New("the connection broke")
)

// goBack gives the server an older state, and another history.
func (s *server) goBack(to dynamofake.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to.Restore(s.DB)
	s.history++
}

// replica is a store, and its calls on the server in one history, or in all where of is 0.
type replica struct {
	awsdb.Client

	server *server
	of     uint64
	renew  func(to uint64)
}

// call makes a call in the history of the replica. A reply is lost where the server is another one by then.
func call[I, O any](ctx context.Context, r *replica, do func(context.Context, *I, ...func(*dynamodb.Options)) (*O, error), in *I) (*O, error) {
	time.Sleep(latency)
	r.server.mu.Lock()
	at := r.server.history
	if r.of != 0 && at != r.of {
		r.server.mu.Unlock()
		r.renew(at)
		return nil, errHistory
	}
	out, err := do(ctx, in)
	r.server.mu.Unlock()
	time.Sleep(latency)
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	if r.server.history != at {
		return nil, errBroken
	}
	return out, err
}

func (r *replica) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return call(ctx, r, r.server.UpdateItem, in)
}

func (r *replica) PutItem(ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return call(ctx, r, r.server.PutItem, in)
}

func (r *replica) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return call(ctx, r, r.server.GetItem, in)
}

func (r *replica) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return call(ctx, r, r.server.TransactWriteItems, in)
}

func (r *replica) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	return call(ctx, r, r.server.BatchGetItem, in)
}

// open returns a store on the server, which is renewed once for each history.
func (s *server) open(t *testing.T, leases bool) *engine.Store {
	t.Helper()
	var opened *engine.Store
	var mu sync.Mutex
	known := s.history
	renew := func(uint64) {}
	renew = func(to uint64) {
		mu.Lock()
		defer mu.Unlock()
		if to > known {
			known = to
			opened.Renew(awsdb.ItemsOf(&replica{Client: s.DB, server: s, of: to, renew: renew}, "limits"), to<<40, nil)
		}
	}
	all, bound := &replica{Client: s.DB, server: s}, &replica{Client: s.DB, server: s, of: known, renew: renew}
	opened, err := engine.NewStore(awsdb.ItemsOf(all, "limits"), engine.StoreConfig{Buckets: awsdb.ItemsOf(bound, "limits"), Table: "limits", Leases: leases, ShardUnits: 1 << 40, Generation: known << 40})
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

// tally is the outcome of a load on one bucket.
type tally struct {
	mu       sync.Mutex
	admitted []time.Time // of each token
}

// above returns the most tokens that a window had above the capacity and the refill.
func (l *tally) above(rate int64) (most int64) {
	room, last := float64(fullBucket), time.Time{}
	for _, at := range l.admitted {
		if !last.IsZero() {
			room = min(room+at.Sub(last).Seconds()*float64(rate), fullBucket)
		}
		last = at
		room--
		most = max(most, int64(-room))
	}
	return most
}

// since returns how many tokens were admitted after a time.
func (l *tally) since(from time.Time) (n int64) {
	for _, at := range l.admitted {
		if at.After(from) {
			n++
		}
	}
	return n
}

func (l *tally) run(ctx context.Context, s *engine.Store, limits *limiter.Limits) {
	for ctx.Err() == nil {
		within, cancel := context.WithTimeout(ctx, time.Second)
		ok, err := s.Take(within, time.Now(), takeOf("hot", limits, 1))
		cancel()
		if ok && err == nil {
			l.mu.Lock()
			l.admitted = append(l.admitted, time.Now())
			l.mu.Unlock()
			continue
		}
		time.Sleep(time.Duration(1+rand.IntN(3)) * time.Millisecond)
	}
}

// A server that comes back with an older state, or with none, gives no token twice that a replica
// remembers, and goes on at once.
func TestAServerThatComesBackOlder(t *testing.T) {
	n := seeds
	if testing.Short() {
		n = 2
	}
	for seed := range n {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { comeBack(t, rand.New(rand.NewPCG(uint64(seed), 1))) }) // #nosec G115 G404 -- a test
		})
	}
}

// seeds is how many histories are tried.
const seeds = 8

// Calls that were admitted late, and not booked yet, are booked on the server that came back.
func TestLateAdmissionsAreBookedAfterAServerCameBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		opened := s.open(t, false)
		limits, err := limiter.NewLimits(limiter.PerDay("l", fullBucket))
		if err != nil {
			t.Fatal(err)
		}
		take := func(within time.Duration, tokens int64) (admitted, late bool) {
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			ops := takeOf("hot", limits, tokens)
			admitted, err := opened.Take(ctx, time.Now(), ops)
			if err != nil {
				t.Fatal(err)
			}
			return admitted, ops[0].Late
		}
		take(time.Second, 1)
		time.Sleep(time.Second)
		before := dynamofake.SnapshotOf(s.DB)
		if admitted, late := take(latency/2, 20); !admitted || !late {
			t.Fatalf("admitted %v, late %v; want both", admitted, late)
		}
		s.goBack(before)
		time.Sleep(2 * time.Second)
		if admitted, _ := take(time.Second, fullBucket-20); admitted {
			t.Error("tokens of a late admission are there again")
		}
		if admitted, _ := take(time.Second, fullBucket-22); !admitted {
			t.Error("a late admission is booked twice")
		}
		if err := opened.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A server may be lost again before a bucket is healed. What was remembered of it before the first loss is not
// forgotten for what was seen of it since.
func TestAServerThatIsLostTwice(t *testing.T) {
	for after := range 8 {
		t.Run(strconv.Itoa(after), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				opened := s.open(t, false)
				limits, err := limiter.NewLimits(limiter.PerDay("l", fullBucket))
				if err != nil {
					t.Fatal(err)
				}
				take := func(within time.Duration, tokens int64) bool {
					ctx, cancel := context.WithTimeout(t.Context(), within)
					defer cancel()
					admitted, err := opened.Take(ctx, time.Now(), takeOf("hot", limits, tokens))
					if err != nil {
						t.Fatal(err)
					}
					return admitted
				}
				take(time.Second, fullBucket-30)
				time.Sleep(time.Second)
				take(latency/2, 10) // late: it is to be written on the server that comes back
				s.goBack(dynamofake.Snapshot{})
				time.Sleep(time.Duration(after) * latency)
				s.goBack(dynamofake.Snapshot{})
				time.Sleep(2 * time.Second)
				if take(time.Second, 31) {
					t.Error("tokens that were taken before the first loss are there again")
				}
				if err := opened.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// What one replica remembers is not given twice by another one that remembers less, and has its call first.
func TestAReplicaThatRemembersLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		less, more := s.open(t, false), s.open(t, false)
		limits, err := limiter.NewLimits(limiter.PerDay("l", fullBucket))
		if err != nil {
			t.Fatal(err)
		}
		take := func(from *engine.Store, tokens int64) bool {
			admitted, err := from.Take(t.Context(), time.Now(), takeOf("hot", limits, tokens))
			if err != nil {
				t.Fatal(err)
			}
			return admitted
		}
		if !take(less, 1) || !take(more, fullBucket-1) {
			t.Fatal("there are not as many tokens as the capacity")
		}
		s.goBack(dynamofake.Snapshot{})
		var work sync.WaitGroup
		work.Go(func() {
			time.Sleep(100 * time.Millisecond)
			take(more, 1) // it notices
		})
		if take(less, 2) {
			t.Error("tokens are given that another replica remembers as taken")
		}
		work.Wait()
		for _, opened := range []*engine.Store{less, more} {
			if err := opened.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// A bucket that was not reached in the quiet time is healed by its first call.
func TestManyBuckets(t *testing.T) {
	const buckets = 6000 // some 64 are healed in 3 round trips
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		opened := s.open(t, false)
		limits, err := limiter.NewLimits(limiter.PerDay("l", 1))
		if err != nil {
			t.Fatal(err)
		}
		take := func(i int) bool {
			admitted, err := opened.Take(t.Context(), time.Now(), takeOf(strconv.Itoa(i), limits, 1))
			if err != nil {
				t.Fatal(err)
			}
			return admitted
		}
		for i := range buckets {
			if !take(i) {
				t.Fatalf("the bucket %d is empty", i)
			}
		}
		s.goBack(dynamofake.Snapshot{})
		for _, i := range []int{buckets - 1, 0, 1, buckets / 2} {
			if take(i) {
				t.Errorf("the token of the bucket %d is there again", i)
			}
		}
		if err := opened.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// takeOf returns a take of tokens from the bucket of an entity.
func takeOf(entity string, limits *limiter.Limits, tokens int64) []limiter.Op {
	return []limiter.Op{{
		Bucket: limiter.BucketKey{Namespace: "ns", Entity: entity, Resource: "r"}, Limits: limits,
		Spends: []limiter.Spend{{Limit: "l", Take: tokens * limiter.Milli}},
	}}
}

// newServer returns a server with an empty table.
func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{DB: dynamofake.New(), history: 1}
	if _, err := s.CreateTable(t.Context(), catalog.TableInput("limits")); err != nil {
		t.Fatal(err)
	}
	return s
}

func comeBack(t *testing.T, random *rand.Rand) {
	t.Helper()
	rate := int64(100 + random.IntN(900))
	limits, err := limiter.NewLimits(limiter.Custom("l", fullBucket, rate, time.Second))
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(t)
	leases := random.IntN(2) == 0
	stores := make([]*engine.Store, 0, replicas)
	for range replicas {
		stores = append(stores, s.open(t, leases))
	}
	ctx, stop := context.WithCancel(t.Context())
	var work sync.WaitGroup
	l := &tally{}
	for _, opened := range stores {
		for range callers {
			work.Go(func() { l.run(ctx, opened, limits) })
		}
	}
	time.Sleep(time.Second)
	backs := 1 + random.IntN(2)
	for range backs {
		var older dynamofake.Snapshot
		if random.IntN(4) > 0 {
			older = dynamofake.SnapshotOf(s.DB)
		}
		time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond)
		s.goBack(older)
		time.Sleep(time.Duration(random.IntN(500)) * time.Millisecond)
	}
	rested := time.Now()
	const rest = 3 * time.Second
	time.Sleep(rest)
	stop()
	work.Wait()
	for _, opened := range stores {
		closing, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		if err := opened.Close(closing); err != nil && !errors.Is(err, limiter.ErrUnavailable) {
			t.Error(err)
		}
		cancel()
	}
	most := int64(backs * replicas * callers) // a write of each replica under way
	if over := l.above(rate); over > most {
		t.Errorf("leases %v, %d/s, %d times back: %d tokens above the bound, want at most %d", leases, rate, backs, over, most)
	}
	if got, least := l.since(rested), int64(rest.Seconds()*float64(rate)*7/10); got < least {
		t.Errorf("leases %v, %d/s, %d times back: %d tokens in %v after it, want at least %d", leases, rate, backs, got, rest, least)
	}
}
