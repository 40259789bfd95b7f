package fleet_test

import (
	"cmp"
	"fmt"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/windows"
)

// load is the load of replicas: kinds of calls, each with callers of its own, on a
// few buckets. Every process makes the same one.
type load struct {
	buckets []bucketSpec
	calls   []callSpec
	endless bool // callers ask until they are stopped
}

// bucketSpec is a bucket of a load.
type bucketSpec struct {
	key    limiter.BucketKey
	limits *limiter.Limits
	// shared says that calls take from it together with others, so that a take from it
	// is rolled back when another denies.
	shared bool
}

// callSpec is a kind of call: it draws n from 1 to most, and takes from all of its
// buckets or from none.
type callSpec struct {
	callers int           // in each replica
	pace    time.Duration // between two calls of a caller, at most
	most    int64
	takes   []takeSpec
	busy    bool // ends when the load is to be low
}

// takeSpec is the take of a call from one bucket.
type takeSpec struct {
	bucket int
	spends []spendSpec
}

// spendSpec is the amount that a call takes of one limit: fixed + each·n millitokens.
type spendSpec struct {
	limit       string
	fixed, each int64
}

func (s spendSpec) amount(n int64) int64 { return s.fixed + s.each*n }

const token = limiter.Milli

// loadOf returns the load of a name.
func loadOf(name string) (load, error) {
	switch name {
	case "fleet":
		return fleetLoad()
	case "duel":
		return duelLoad()
	case "sharded":
		return shardedLoad()
	default:
		return load{}, fmt.Errorf("there is no load %q", name)
	}
}

// fleetLoad is one hot bucket of two limits, four middling ones, one that refills by
// odd fractions, and three children of a parent. Now a child denies, now the parent.
// These refill little while a take is held that will be rolled back.
func fleetLoad() (load, error) {
	var l load
	var err error
	add := func(entity string, shared bool, limits ...limiter.Limit) (i int) {
		i, err = l.add(err, entity, shared, limits...)
		return i
	}
	hot := add("hot", false, limiter.PerSecond("rps", 12_000), limiter.PerSecond("tpm", 55_000).WithBurst(80_000))
	l.calls = append(l.calls, callSpec{callers: 1000, most: 9, takes: []takeSpec{{hot, []spendSpec{{"rps", token, 0}, {"tpm", 0, token}}}}})
	for i := range 4 {
		user := add(fmt.Sprint("user/", i), false, limiter.PerSecond("rps", 60).WithBurst(60+int64(i)*100))
		l.calls = append(l.calls, callSpec{callers: 8, pace: 100 * time.Millisecond, most: 3, takes: []takeSpec{{user, []spendSpec{{"rps", 0, token}}}}})
	}
	odd := add("odd", false, limiter.Custom("l", 50, 100, 7*time.Second))
	l.calls = append(l.calls, callSpec{callers: 6, pace: 100 * time.Millisecond, most: 3, takes: []takeSpec{{odd, []spendSpec{{"l", 17, 391}}}}})
	parent := add("org", true, limiter.PerMinute("rps", 60).WithBurst(300))
	for i := range 3 {
		child := add(fmt.Sprint("key/", i), true, limiter.PerMinute("rps", 20).WithBurst(60+80*int64(i)), limiter.PerMinute("tpm", 60).WithBurst(400))
		l.calls = append(l.calls, callSpec{callers: 6, pace: 100 * time.Millisecond, most: 5, takes: []takeSpec{
			{child, []spendSpec{{"rps", token, 0}, {"tpm", 0, token}}}, {parent, []spendSpec{{"rps", token, 0}}},
		}})
	}
	return l, err
}

// add adds a bucket, and returns its index and the first error.
func (l *load) add(before error, entity string, shared bool, limits ...limiter.Limit) (int, error) {
	set, err := limiter.NewLimits(limits...)
	l.buckets = append(l.buckets, bucketSpec{
		key:    limiter.BucketKey{Namespace: limiter.DefaultNamespace, Entity: entity, Resource: "model"},
		limits: set, shared: shared,
	})
	return len(l.buckets) - 1, cmp.Or(before, err)
}

// duelLoad is one bucket that all replicas want more of than there is.
func duelLoad() (load, error) {
	limits, err := limiter.NewLimits(limiter.PerSecond("rps", 500))
	return load{
		buckets: []bucketSpec{{key: limiter.BucketKey{Namespace: limiter.DefaultNamespace, Entity: "duel", Resource: "model"}, limits: limits}},
		calls:   []callSpec{{callers: 64, most: 3, takes: []takeSpec{{0, []spendSpec{{"rps", 0, token}}}}}},
	}, err
}

// ops returns the operations that a call sends to the store.
func (l *load) ops(c *callSpec, n int64) []limiter.Op {
	ops := make([]limiter.Op, len(c.takes))
	for i, t := range c.takes {
		b := &l.buckets[t.bucket]
		ops[i] = limiter.Op{Bucket: b.key, Limits: b.limits, Generation: 1, Spends: make([]limiter.Spend, len(t.spends))}
		for j, s := range t.spends {
			ops[i].Spends[j] = limiter.Spend{Limit: s.limit, Take: s.amount(n)}
		}
	}
	return ops
}

// takings returns the admissions of one limit of one bucket.
func (l *load) takings(histories []history, start int64, bucket int, limit string) []windows.Taking {
	var all []windows.Taking
	for _, h := range histories {
		for _, r := range h.records {
			if r.Outcome != admitted {
				continue
			}
			for _, t := range l.calls[r.Call].takes {
				for _, s := range t.spends {
					if t.bucket == bucket && s.limit == limit {
						all = append(all, windows.Taking{From: r.From - start, To: r.to() - start, Amount: s.amount(r.Amount), Replica: h.replica})
					}
				}
			}
		}
	}
	return all
}
