package fleetsim_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/scripttest"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// items are those of the table, over the network of a process.
type items struct {
	awsdb.Items

	process *process
}

// items returns the items that a process reads and writes.
func (p *process) items() awsdb.Items {
	return items{awsdb.ItemsOf(client{process: p}, simTable), p}
}

// Write implements [awsdb.Items].
func (i items) Write(ctx context.Context, w *schema.ItemWrite) (map[string]types.AttributeValue, error) {
	return awsdb.ItemsOf(client{process: i.process, write: w}, simTable).Write(ctx, w)
}

// client is how a process sends messages to DynamoDB: each takes its time there
// and back, and may be lost, come twice, or much later than it is waited for.
type client struct {
	awsdb.Client // nil: the engine uses the methods below, and no other

	process *process
	write   *schema.ItemWrite // that is sent; nil = it is none of a bucket
}

func (c client) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	c.process.passesOver(show(in.Key[schema.AttrPK]))
	return sendTo(ctx, c.process, "GetItem", in.Key, func(ctx context.Context) (*dynamodb.GetItemOutput, error) { return c.process.fleet.db.GetItem(ctx, in) })
}

func (c client) PutItem(ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	f, id := c.process.fleet, idOfPut(c.write)
	sent := f.now
	out, err := sendTo(ctx, c.process, "PutItem", in.Item, func(ctx context.Context) (*dynamodb.PutItemOutput, error) {
		f.writer, f.written, f.exact, f.again = c.process, sent, nil, ""
		out, err := f.db.PutItem(ctx, in)
		if _, refused := awsdb.ConditionItem(err); refused && c.write.OrUpdate != nil {
			return c.orUpdate(ctx)
		}
		f.applied[id] = f.applied[id] || err == nil
		return out, err
	})
	if _, refused := awsdb.ConditionItem(err); refused || awsdb.Retryable(err) {
		f.refused[id] = true
	}
	return out, err
}

// idOfPut returns the id of a write that creates an item, or takes from one that is there.
func idOfPut(w *schema.ItemWrite) string {
	if w.OrUpdate != nil {
		for i := range w.OrUpdate.Changes {
			if c := &w.OrUpdate.Changes[i]; strings.HasPrefix(c.Attr, schema.AttrSlot) {
				return show(c.Value)
			}
		}
	}
	return ""
}

func (c client) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	f := c.process.fleet
	if f.mutation != nil {
		f.mutation(in)
	}
	f.traceUpdate(c.process, in)
	_, id := idOf(in)
	delete(f.refused, id)
	kind, pk, sent := exactKind(in), show(in.Key[schema.AttrPK]), f.now
	if kind != "" {
		c.process.tries(pk, kind, in)
		defer c.process.answered(pk, kind)
	} else {
		c.process.passes(pk, in)
	}
	c.process.sends(pk)
	told, throttled, landed := false, false, false // told: the sender got the answer that it was not applied
	out, err := sendTo(ctx, c.process, "UpdateItem", in.Key, func(ctx context.Context) (*dynamodb.UpdateItemOutput, error) {
		out, err := f.update(ctx, in, c.write)
		landed = landed || err == nil
		if err == nil && told && kind != "" { // the replica does not know the slot: it waits for the term
			c.process.suffers(f, leaseTerm)
		}
		if err == nil && throttled {
			f.copyOfThrottled(in)
		}
		f.writer, f.written = c.process, sent
		f.did(in, err)
		if item, refused := awsdb.ConditionItem(err); kind != "" && (err == nil || refused) {
			c.process.tried(pk, kind, sent, err == nil, show(item[schema.AttrEpoch]))
			if err == nil && slices.Contains(attrsOf(in, in.UpdateExpression), schema.AttrLeases) {
				delete(c.process.trying, pk+leaseWrite)
			}
		}
		return out, err
	})
	if _, refused := awsdb.ConditionItem(err); refused || awsdb.Retryable(err) {
		f.refused[id], told = true, true
	}
	if overfills := f.overfills[id]; err == nil && len(overfills) > 0 {
		c.process.countsRoom(overfills)
	}
	if throttled = awsdb.Retryable(err); throttled && landed {
		f.copyOfThrottled(in)
		if kind != "" {
			c.process.strange[f.byKey[pk].bucket] = f.now
		}
	}
	return out, err
}

// orUpdate applies the other write of a put as a server that runs scripts: to an item that is there.
func (c client) orUpdate(ctx context.Context) (*dynamodb.PutItemOutput, error) {
	f := c.process.fleet
	image, err := f.script(ctx, c.write.OrUpdate, f.did)
	if err != nil {
		f.seen["refused by an item that its sender had not seen"]++
		return nil, err
	}
	f.seen["applied to an item that its sender had not seen"]++
	return &dynamodb.PutItemOutput{Attributes: image}, nil
}

// script makes an update as a server that runs scripts.
func (f *fleet) script(ctx context.Context, w *schema.ItemWrite, did func(*dynamodb.UpdateItemInput, error)) (map[string]types.AttributeValue, error) {
	return scripttest.Items(awsdb.ItemsOf(server{f.db, did}, simTable), simTable).Write(ctx, w)
}

// server is DynamoDB for its own script.
type server struct {
	awsdb.Client

	did func(*dynamodb.UpdateItemInput, error) // is told of an update
}

func (s server) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	out, err := s.Client.UpdateItem(ctx, in, opts...)
	s.did(in, err)
	return out, err
}

// update answers an update as a server that runs scripts, where it is for one.
func (f *fleet) update(ctx context.Context, in *dynamodb.UpdateItemInput, w *schema.ItemWrite) (out *dynamodb.UpdateItemOutput, err error) {
	if scripttest.AddsAbove(w) {
		var image map[string]types.AttributeValue
		image, err = f.script(ctx, w, func(*dynamodb.UpdateItemInput, error) {})
		out = &dynamodb.UpdateItemOutput{Attributes: image}
	} else {
		out, err = f.db.UpdateItem(ctx, in)
	}
	if err != nil || w.Known == 0 {
		return out, err
	}
	if show(out.Attributes[schema.AttrSerial]) != strconv.FormatInt(w.Known+1, 10) {
		f.seen["answered with an unexpected item"]++
		return out, nil
	}
	f.seen["answered without the item"]++
	return &dynamodb.UpdateItemOutput{}, nil
}

// throttledCopy is seen when a write is applied though its sender is told that it was throttled.
const throttledCopy = "throttled, and a copy landed"

// copyOfThrottled records that one copy of a write was applied, while the sender's answer says that
// the other one was throttled. Its requests are in a later write too, and so is the report of a
// lease.
func (f *fleet) copyOfThrottled(in *dynamodb.UpdateItemInput) {
	f.seen[throttledCopy]++
	b := f.byKey[show(in.Key[schema.AttrPK])].bucket
	for _, l := range b.limits {
		n := addedBy(in, schema.LimitAttr(l.name, schema.LimitConsumed))
		l.usage.perhaps(n)
		l.lacks.add(max(n, 0))
	}
}

// did records that DynamoDB executed an update, perhaps not for the first time. A copy of a take is
// applied again if another take took the place of its id. A write that books may not be applied
// again. A copy can also be applied after another one was refused, and its requests are in a later
// write too.
func (f *fleet) did(in *dynamodb.UpdateItemInput, err error) {
	attr, id := idOf(in)
	f.tracef("%s=%s: applied %t", attr, id, err == nil)
	f.again, f.exact = "", nil
	if err != nil || id == "" {
		return
	}
	if isExact(in) && exactKind(in) == "" {
		f.exact = in
	}
	f.lifted(in)
	if f.applied[id] && strings.HasPrefix(attr, schema.AttrBooked) {
		f.failf("a charge or a refund lands twice: %s", id)
	}
	if f.applied[id] || f.refused[id] {
		f.again = attr
	}
	f.applied[id] = true
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
	f := p.fleet
	m := &message[O]{process: p, op: op, pk: show(k[schema.AttrPK]), sent: f.now, from: p.machine(), apply: apply, task: f.running}
	m.send()
	for !m.answered {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		m.stop = m.task.stops
		if end := endOf(ctx); end != never {
			m.task.wake(end)
		}
		f.park()
	}
	if !m.date.IsZero() { // as the client does
		before, era := p.clock.State().Offset, p.clock.Era()
		p.clock.Observe(m.from, p.machine(), m.date)
		p.slept.corrected(p.clock.State().Offset-before, f.now)
		if f.on.drift && p.clock.Era() != era {
			p.jumped = f.now
		}
		p.untold.reply(m.sent)
	}
	return m.out, m.err
}

// send has a message go on its way, as luck has it.
func (m *message[O]) send() {
	f, p := m.process.fleet, m.process
	there := f.latency()
	if p.loses(f) {
		p.suffers(f, answersFor)
		return
	}
	if there > int64(longTrip*f.median) {
		p.suffers(f, min(there, answersFor))
	}
	if !f.on.lost {
		f.after(there, m.arrive)
		return
	}
	switch x := f.r.IntN(1000); {
	case x < 8: // the request is lost
		p.suffers(f, answersFor)
		if f.r.IntN(2) == 0 {
			f.after(there, func() { m.answer(nil, errReset, time.Time{}) })
		}
		return
	case x < 14: // it comes late
		p.suffers(f, answersFor)
		there += f.r.Int64N(int64(12 * time.Second))
	case x < 30: // it comes twice
		f.after(there+f.r.Int64N([]int64{1e6, 1e9, 15e9}[f.r.IntN(3)]), m.arrive)
	}
	f.after(there, m.arrive)
}

// arrive has DynamoDB execute a message, and send the reply.
func (m *message[O]) arrive() {
	f := m.process.fleet
	var out *O
	var err error
	kind := dynamofake.None
	switch {
	case f.now-m.sent > signatureLife || f.outUntil > f.now:
		m.process.suffers(f, answersFor)
		return
	case f.throttledUntil > f.now && f.r.IntN(3) > 0:
		kind = dynamofake.Throttle
	case f.on.lost && f.r.IntN(400) == 0:
		kind = dynamofake.ServerError
	}
	if kind != dynamofake.None {
		m.process.suffers(f, answersFor)
	}
	if err = (dynamofake.Fault{Kind: kind}).Before(m.op); err == nil {
		out, err = m.apply(context.Background())
		f.tracef("%s of replica %d to %s, sent %v ago: %v", m.op, m.process.index, m.pk, time.Duration(f.now-m.sent), err)
		f.arrived(m.pk, m.op, err)
		if f.on.lost && f.r.IntN(400) == 0 { // applied, and DynamoDB says that it does not know
			m.process.suffers(f, answersFor)
			out, err = nil, (dynamofake.Fault{Kind: dynamofake.ServerError}).Before(m.op)
		}
	} else {
		f.note(m.op, int64(kind))
	}
	date := time.UnixMilli(simStart).Add(time.Duration(f.now)).Truncate(time.Second)
	back := f.latency()
	if back > int64(longTrip*f.median) {
		m.process.suffers(f, min(back, answersFor))
	}
	switch lost := m.process.loses(f) || f.on.lost && f.r.IntN(100) == 0; {
	case lost && f.r.IntN(2) == 0:
		m.process.suffers(f, answersFor)
		f.after(back, func() { m.answer(nil, errReset, time.Time{}) })
	case lost:
		m.process.suffers(f, answersFor)
	default:
		f.after(back, func() { m.answer(out, err, date) })
	}
}

// answer has a reply come, the first one if there are several. Its date is zero where it
// is none.
func (m *message[O]) answer(out *O, err error, date time.Time) {
	if m.answered {
		return
	}
	m.answered, m.out, m.err, m.date = true, out, err, date
	if !date.IsZero() {
		m.process.replied = m.process.fleet.now
	}
	m.task.goOn(m.stop)
}

// latency draws how long a message takes one way: mostly a millisecond or two, in a far
// region forty, and now and then a hundred times as long.
func (f *fleet) latency() int64 {
	const spread = 0.5
	d := f.median * math.Exp(spread*f.r.NormFloat64())
	if f.on.tails && f.r.IntN(200) == 0 {
		d *= 1 + 3/math.Sqrt(1-f.r.Float64())
	}
	return int64(min(d, 60e9))
}
