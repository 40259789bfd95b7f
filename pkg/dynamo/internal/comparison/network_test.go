package comparison_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
)

// Latencies are log-normal: half of the calls take less than medianLatency, one of a
// hundred more than 10 ms.
const (
	medianLatency = 3500 * time.Microsecond
	latencySpread = 0.4513 // ln(10 ms/3.5 ms) by the 99th percentile of the normal distribution, 2.3263
)

// network is a client whose calls take time, half of it on the way there and half on the
// way back. It counts what it sends of buckets.
type network struct {
	dynamo.Client
	mu sync.Mutex
	r  *rand.Rand

	writes, refused, reads atomic.Int64
}

// travel calls something after one half of a latency, and returns after the other.
func (n *network) travel(ctx context.Context, do func() error) error {
	n.mu.Lock()
	half := time.Duration(float64(medianLatency) * math.Exp(latencySpread*n.r.NormFloat64()) / 2)
	n.mu.Unlock()
	if err := pause(ctx, half); err != nil {
		return err
	}
	err := do()
	if late := pause(ctx, half); late != nil {
		return late
	}
	return err
}

// draw returns a time up to most, by chance.
func (n *network) draw(most time.Duration) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Duration(n.r.Int64N(int64(most) + 1))
}

// wrote counts a write.
func (n *network) wrote(err error) {
	n.writes.Add(1)
	if refused := (*types.ConditionalCheckFailedException)(nil); errors.As(err, &refused) {
		n.refused.Add(1)
	}
}

func (n *network) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (out *dynamodb.UpdateItemOutput, err error) {
	err = n.travel(ctx, func() (err error) {
		out, err = n.Client.UpdateItem(ctx, in, opts...)
		n.wrote(err)
		return err
	})
	return out, err
}

func (n *network) PutItem(ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options)) (out *dynamodb.PutItemOutput, err error) {
	err = n.travel(ctx, func() (err error) {
		out, err = n.Client.PutItem(ctx, in, opts...)
		n.wrote(err)
		return err
	})
	return out, err
}

func (n *network) GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (out *dynamodb.GetItemOutput, err error) {
	err = n.travel(ctx, func() (err error) {
		out, err = n.Client.GetItem(ctx, in, opts...)
		n.reads.Add(1)
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
