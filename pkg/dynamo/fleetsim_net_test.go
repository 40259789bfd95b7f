package dynamo

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/internal/dynamofake"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
)

// fleetClient is how a process sends messages to DynamoDB: each takes its time there
// and back, and may be lost, come twice, or much later than anybody waits for it.
type fleetClient struct {
	*dynamofake.DB
	process *process
}

func (c fleetClient) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return sendTo(ctx, c.process, "GetItem", in.Key, func(ctx context.Context) (*dynamodb.GetItemOutput, error) { return c.DB.GetItem(ctx, in) })
}

func (c fleetClient) PutItem(ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	if put := c.process.fleet.put; put != nil {
		put(in)
	}
	return sendTo(ctx, c.process, "PutItem", in.Item, func(ctx context.Context) (*dynamodb.PutItemOutput, error) { return c.DB.PutItem(ctx, in) })
}

func (c fleetClient) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	books := false
	if update := c.process.fleet.update; update != nil {
		books = bookedOnce(in)
		update(in)
	}
	return sendTo(ctx, c.process, "UpdateItem", in.Key, func(ctx context.Context) (*dynamodb.UpdateItemOutput, error) {
		out, err := c.DB.UpdateItem(ctx, in)
		c.process.fleet.did(in, books, err)
		return out, err
	})
}

// did takes down that DynamoDB did what an update asks for, perhaps not for the first time.
// Of what books that is no excuse.
func (f *fleet) did(in *dynamodb.UpdateItemInput, books bool, err error) {
	if f.again = err == nil && f.applied[in] && !books; err == nil {
		f.applied[in] = true
	}
}

// bookedOnce reports whether an update rests on the last charge or refund of its slot.
func bookedOnce(in *dynamodb.UpdateItemInput) bool {
	return slices.ContainsFunc(clauses(in), func(c clause) bool { return strings.HasPrefix(c.attr, schema.AttrBooked) })
}

// message is one message under way, and its reply.
type message[O any] struct {
	process *process
	op      string
	pk      string
	sent    int64
	from    time.Time // the same, on the machine's clock
	apply   func(context.Context) (*O, error)

	task     *task // that waits for the reply
	stop     uint64
	answered bool
	out      *O
	err      error
	date     time.Time
}

// signatureLife is how old a message may be that DynamoDB takes.
const signatureLife = int64(5 * time.Minute)

// errReset is of a connection that broke.
var errReset = errors.New("connection reset by peer")

// sendTo sends a message of the running task, and waits for its reply until ctx ends.
func sendTo[O any](ctx context.Context, p *process, op string, k map[string]types.AttributeValue, apply func(context.Context) (*O, error)) (*O, error) {
	if p.ended {
		return nil, context.Canceled
	}
	f := p.fleet
	pk, _ := k[schema.AttrPK].(*types.AttributeValueMemberS)
	m := &message[O]{process: p, op: op, pk: pk.Value, sent: f.now, from: p.now(), apply: apply, task: f.running}
	m.send()
	for !m.answered {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		m.stop = m.task.stops
		if end := endOf(ctx); end != never {
			m.task.wake(end)
		}
		if !f.park() {
			return nil, context.Canceled
		}
	}
	if !m.date.IsZero() { // as the client does
		p.clock.Observe(m.from, p.now(), m.date)
	}
	return m.out, m.err
}

// send has a message go on its way, as luck has it.
func (m *message[O]) send() {
	f, p := m.process.fleet, m.process
	there := f.now + f.latency()
	if p.loses(f) {
		return
	}
	if !f.lost {
		f.at(there, m.arrive)
		return
	}
	switch x := f.r.IntN(1000); {
	case x < 8: // the request is lost
		if f.r.IntN(2) == 0 {
			f.at(there, func() { m.answer(nil, errReset, time.Time{}) })
		}
		return
	case x < 14: // it comes late
		there += f.r.Int64N(int64(12 * time.Second))
	case x < 30: // it comes twice
		f.at(there+f.r.Int64N([]int64{1e6, 1e9, 15e9}[f.r.IntN(3)]), m.arrive)
	}
	f.at(there, m.arrive)
}

// arrive has DynamoDB do what a message asks for, and send the reply.
func (m *message[O]) arrive() {
	f := m.process.fleet
	var out *O
	var err error
	kind := dynamofake.None
	switch {
	case f.now-m.sent > signatureLife:
		return
	case f.throttledUntil > f.now && f.r.IntN(3) > 0:
		kind = dynamofake.Throttle
	case f.lost && f.r.IntN(400) == 0:
		kind = dynamofake.ServerError
	}
	if err = (dynamofake.Fault{Kind: kind}).Before(m.op); err == nil {
		out, err = m.apply(context.Background())
		f.arrived(m.pk, m.op, err)
		if f.lost && f.r.IntN(400) == 0 { // applied, and DynamoDB says that it does not know
			out, err = nil, (dynamofake.Fault{Kind: dynamofake.ServerError}).Before(m.op)
		}
	} else {
		f.note(m.op, int64(kind))
	}
	date := time.UnixMilli(simStart).Add(time.Duration(f.now)).Truncate(time.Second)
	back := f.now + f.latency()
	switch lost := m.process.loses(f) || f.lost && f.r.IntN(100) == 0; {
	case lost && f.r.IntN(2) == 0:
		f.at(back, func() { m.answer(nil, errReset, time.Time{}) })
	case !lost:
		f.at(back, func() { m.answer(out, err, date) })
	}
}

// answer has a reply come, the first one if there are several. Its date is zero where it
// is none.
func (m *message[O]) answer(out *O, err error, date time.Time) {
	if m.answered {
		return
	}
	m.answered, m.out, m.err, m.date = true, out, err, date
	m.task.goOn(m.stop)
}

// latency draws how long a message takes one way: mostly a millisecond or two, and
// now and then a hundred times as long.
func (f *fleet) latency() int64 {
	const median, spread = 1.2e6, 0.5
	d := median * math.Exp(spread*f.r.NormFloat64())
	if f.tails && f.r.IntN(200) == 0 {
		d *= 1 + 3/math.Sqrt(1-f.r.Float64())
	}
	return int64(min(d, 60e9))
}
