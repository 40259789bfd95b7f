package comparison_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
)

// Latencies are log-normal: half of the calls take less than medianLatency, unless the
// scenario has another median, and one of a hundred more than 10 ms.
const (
	medianLatency = 3500 * time.Microsecond
	latencySpread = 0.4513 // ln(10 ms/3.5 ms) by the 99th percentile of the normal distribution, 2.3263
	coldFactor    = 10     // how much longer messages take while the network is cold
)

// network is a client whose calls take time, half of it on the way there and half on the
// way back. Its writes are counted.
type network struct {
	dynamo.Client

	median time.Duration
	least  time.Duration // a message takes this to twice as long, at random; 0 = as median says
	warm   time.Time     // until then it is cold
	tally  *tally
	exacts *exacts // that follow updates; nil = none
	index  int     // of the replica

	mu   sync.Mutex
	r    *rand.Rand
	dead bool // nothing is answered
}

// cut has no message answered, or messages answered again.
func (n *network) cut(off bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dead = off
}

// half draws half of a latency, and reports whether anything is answered.
func (n *network) half() (half time.Duration, answers bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.least > 0 {
		return (n.least + time.Duration(n.r.Int64N(int64(n.least)))) / 2, !n.dead
	}
	return time.Duration(float64(n.median) * math.Exp(latencySpread*n.r.NormFloat64()) / 2), !n.dead
}

// tally counts the writes of all replicas.
type tally struct {
	mu              sync.Mutex
	writes, refused int64
	items           map[string]int64 // writes of each item
}

func newTally() *tally { return &tally{items: make(map[string]int64)} }

// wrote counts a write of an item.
func (t *tally) wrote(key map[string]types.AttributeValue, err error) {
	name := text(key["PK"]) + "\x00" + text(key["SK"])
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writes++
	t.items[name]++
	if refused := (*types.ConditionalCheckFailedException)(nil); errors.As(err, &refused) {
		t.refused++
	}
}

func text(v types.AttributeValue) string {
	s, _ := v.(*types.AttributeValueMemberS)
	if s == nil {
		return ""
	}
	return s.Value
}

// sum returns all writes, those that were refused, and the writes of the item with the most.
func (t *tally) sum() (writes, refused, hottest int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.items {
		hottest = max(hottest, n)
	}
	return t.writes, t.refused, hottest
}

// reset counts from 0.
func (t *tally) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writes, t.refused, t.items = 0, 0, make(map[string]int64)
}

// travel calls something after one half of a latency, and returns after the other.
func (n *network) travel(ctx context.Context, do func() error) error {
	half, answers := n.half()
	if !answers {
		<-ctx.Done()
		return ctx.Err()
	}
	if time.Now().Before(n.warm) {
		half *= coldFactor
	}
	if err := pause(ctx, half); err != nil {
		return err
	}
	err := do()
	if late := pause(ctx, half); late != nil {
		return late
	}
	return err
}

// draw returns a time up to most, at random.
func (n *network) draw(most time.Duration) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Duration(n.r.Int64N(int64(most) + 1))
}

func (n *network) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (out *dynamodb.UpdateItemOutput, err error) {
	n.exacts.sent(n.index, in)
	err = n.travel(ctx, func() (err error) {
		out, err = n.Client.UpdateItem(ctx, in, opts...)
		n.tally.wrote(in.Key, err)
		n.exacts.done(n.index, in, out, err)
		return err
	})
	return out, err
}

func (n *network) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options)) (out *dynamodb.TransactWriteItemsOutput, err error) {
	err = n.travel(ctx, func() (err error) {
		out, err = n.Client.TransactWriteItems(ctx, in, opts...)
		return err
	})
	return out, err
}

func (n *network) Query(ctx context.Context, in *dynamodb.QueryInput, opts ...func(*dynamodb.Options)) (out *dynamodb.QueryOutput, err error) {
	err = n.travel(ctx, func() (err error) {
		out, err = n.Client.Query(ctx, in, opts...)
		return err
	})
	return out, err
}

func (n *network) PutItem(ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options)) (out *dynamodb.PutItemOutput, err error) {
	err = n.travel(ctx, func() (err error) {
		out, err = n.Client.PutItem(ctx, in, opts...)
		n.tally.wrote(in.Item, err)
		return err
	})
	return out, err
}

func (n *network) GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (out *dynamodb.GetItemOutput, err error) {
	err = n.travel(ctx, func() (err error) {
		out, err = n.Client.GetItem(ctx, in, opts...)
		return err
	})
	return out, err
}

func (n *network) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, opts ...func(*dynamodb.Options)) (out *dynamodb.BatchGetItemOutput, err error) {
	err = n.travel(ctx, func() (err error) {
		out, err = n.Client.BatchGetItem(ctx, in, opts...)
		return err
	})
	return out, err
}

// pause waits for d, or until ctx ends, and says so.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
