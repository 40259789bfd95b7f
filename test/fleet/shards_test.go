package fleet_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/clocktest"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
	"github.com/ratelimit/ratelimit/test/kit/windows"
)

// The entities whose buckets are split in the load "sharded".
const (
	hotEntity  = "hot"
	poolEntity = "pool"
)

// slowMachine is after how long two shards of the hot bucket are enough: a machine that
// is busy with other work does not write often enough for four of each.
const slowMachine = 45 * time.Second

// mostShards is how many shards a bucket of that load comes to have: with more, none
// would hold a whole token.
const mostShards = 8

// shardedLoad is two buckets that are written so often that they are split, until all
// but the steady callers end. They refill little, because takes from shards are
// rolled back. A call of the first bucket asks for two limits. Some calls of the
// other ask for more than any one shard can hold, and a parent denies most of these.
func shardedLoad() (load, error) {
	l := load{endless: true}
	hot, err := l.add(nil, hotEntity, true, limiter.Custom("l", 15, 3, 5*time.Minute), limiter.Custom("m", 15, 1, 2*time.Minute))
	pool, err := l.add(err, poolEntity, true, limiter.Custom("l", 15, 3, 5*time.Minute))
	parent, err := l.add(err, "org", true, limiter.PerSecond("rps", 1))
	both := []spendSpec{{"l", 0, 1}, {"m", 0, 1}}
	l.calls = []callSpec{
		{busy: true, callers: 24, most: 2, takes: []takeSpec{{hot, both}}},
		{busy: true, callers: 12, most: 1, takes: []takeSpec{{pool, both[:1]}}},
		{busy: true, callers: 2, pace: 200 * time.Millisecond, most: 9, takes: []takeSpec{
			{pool, []spendSpec{{"l", 2 * token, 100}}}, {parent, []spendSpec{{"rps", token, 0}}},
		}},
		{callers: 1, pace: 3 * time.Second, most: 3, takes: []takeSpec{{hot, both[:1]}}},
		{callers: 1, pace: 3 * time.Second, most: 9, takes: []takeSpec{{pool, []spendSpec{{"l", 0, 60}}}}},
	}
	return l, err
}

// shardedScenario is a run whose buckets are split by some thirty writes a second.
func shardedScenario() scenario {
	often := allFaults()
	often.most = 70
	return scenario{
		load: "sharded", skews: []time.Duration{0, -time.Hour, time.Hour, 400 * time.Millisecond}, decisions: 1 << 40,
		faults: often, patience: 3 * time.Minute, units: 40, quiet: 2 * time.Second,
	}
}

// Buckets are split by load alone, and made whole by quiet, while calls are lost, late
// and refused and clocks are hours apart: no window over all of it has too many
// admissions, and there are some however many shards there are.
func TestShardsComeAndGoWithLoad(t *testing.T) {
	f := newFleet(t, shardedScenario())
	all := f.runSharded(t)
	f.report(t)
	faults, _ := f.check(t) // how near the bound they came depends on the machine
	for _, fault := range faults {
		t.Errorf("seed %d: %s", f.seed, fault)
	}
	f.faults.require(t, f.proxy)
	hot := slices.IndexFunc(f.asked.buckets, func(b bucketSpec) bool { return b.key.Entity == hotEntity })
	f.requireShards(t, all, f.asked.takings(f.histories, 0, hot, "l"))
}

// forms is how many live shards the buckets of a load have, for a while.
type forms struct {
	from, to int64 // microseconds since 1970, of the first read that showed it and the last
	live     map[string]int
}

func (f forms) String() string { return fmt.Sprintf("%.1f s %v", float64(f.to-f.from)/1e6, f.live) }

// runSharded runs the load until its buckets were split and are whole again, and
// returns the forms that they had.
func (f *fleet) runSharded(t *testing.T) []forms {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- f.run(ctx) }()
	var all []forms
	var whole time.Time
	began := time.Now()
	for calm, over := false, false; !over; clocktest.Pause(ctx, 40*time.Millisecond) {
		select {
		case err := <-ended:
			t.Fatalf("seed %d: the replicas ended: %v; their buckets had shards: %v", f.seed, err, all)
		default:
		}
		now := f.form(t)
		if n := len(all); n > 0 && maps.Equal(all[n-1].live, now.live) {
			all[n-1].to = now.to
		} else {
			all = append(all, now)
		}
		hot, pool := now.live[hotEntity], now.live[poolEntity]
		switch {
		case !calm && (min(hot, pool) >= 4 || hot >= 2 && time.Since(began) > slowMachine):
			calm = true
			close(f.calm)
		case !calm || hot > 1 || pool > 1:
			whole = time.Now()
		default:
			over = time.Since(whole) > 2*time.Second
		}
	}
	close(f.stop)
	if err := <-ended; err != nil {
		t.Fatalf("seed %d: %v", f.seed, err)
	}
	return all
}

// form reads the items of all buckets.
func (f *fleet) form(t *testing.T) forms {
	t.Helper()
	now := forms{live: make(map[string]int), to: time.Now().UnixMicro()}
	out, err := dynamotest.Start(t).Client(t).Scan(t.Context(), &dynamodb.ScanInput{TableName: &f.table})
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range out.Items {
		level, ok := item["lvl"].(*types.AttributeValueMemberN)
		key, named := item["PK"].(*types.AttributeValueMemberS)
		if _, retired := item["rt"]; !ok || !named || retired {
			continue
		}
		entity := strings.Split(key.Value, "#")[1] // namespace/BUCKET#entity#resource#shard
		if n, err := strconv.Atoi(level.Value); err != nil || n > mostShards {
			t.Errorf("seed %d: a shard of %s is at level %s, want at most %d", f.seed, entity, level.Value, mostShards)
		}
		now.live[entity]++
	}
	now.from = time.Now().UnixMicro()
	return now
}

// requireShards fails the test unless calls were admitted at every size of the hot
// bucket: on its way up to 4 shards, or as many as it had, and on its way down to 1.
func (f *fleet) requireShards(t *testing.T, all []forms, admitted []windows.Taking) {
	t.Helper()
	first, last := 0, 0 // times of most shards, which are on both ways
	for i := range all {
		live, most := all[i].live[hotEntity], all[first].live[hotEntity]
		if live > most {
			first = i
		}
		if live >= most {
			last = i
		}
	}
	t.Logf("shards: %v", all)
	largest := min(4, all[first].live[hotEntity])
	for way, part := range map[string][]forms{"up": all[:last+1], "down": all[first:]} {
		for size := 1; size <= largest; size *= 2 {
			if admittedAt(part, size, admitted) == 0 {
				t.Errorf("seed %d: nothing was admitted by %d to %d shards on the way %s: %v", f.seed, size, 2*size-1, way, part)
			}
		}
	}
}

// admittedAt returns how many calls lie wholly in times when the hot bucket had size
// shards, or more but not twice as many.
func admittedAt(all []forms, size int, admitted []windows.Taking) int {
	n := 0
	for _, at := range all {
		if live := at.live[hotEntity]; live < size || live >= 2*size {
			continue
		}
		for _, a := range admitted {
			if a.From >= at.from && a.To <= at.to {
				n++
			}
		}
	}
	return n
}
