package lane

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/lease"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/plan"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// flight is a message under way. Its goroutine changes it, under the lane's lock.
type flight struct {
	write  *plan.Write // nil: a read
	id     plan.ID
	actors []*Request
	exact  bool
	lease  *lease.Plan            // that the write carries out; nil = none
	put    *dynamodb.PutItemInput // that makes another shard; nil = none
	epoch  int64                  // of that
	peek   *task                  // for which another shard is read; nil = none
	done   func()                 // called when the write was applied; nil = nothing
	reaps  int64                  // leases of other replicas that the write ends
	books  bool
	solo   bool // no other was under way when it was sent
	first  bool // no other is sent before its end
	once   bool // it is never sent again
	turn   bool // it asks replicas of version 1 for a turn
	asks   bool // the item is read to tell what became of the write
	asked  uint64
	at     int64         // the lane's clock when it was planned
	sent   time.Time     // when the last copy was sent
	until  time.Time     // it is sent again until then
	within time.Duration // the time of one copy
	tries  int
	doubt  bool // it is not known what became of a copy
}

// shown reports whether a state has the id of the write.
func (f *flight) shown(state *schema.Bucket) bool {
	return state != nil && f.write != nil && (state.Slots[f.id.Slot][f.id.Channel] == f.id.Write || state.Booked[f.id.Slot] == f.id.Write)
}

// read returns a read of the item. The lane is locked.
func (l sender) read(now time.Time) *flight {
	return l.launch(&flight{}, now)
}

// write returns the write of a group. The lane is locked.
func (l sender) write(g *group, now time.Time) *flight {
	f := &flight{id: plan.ID{Slot: l.host.self.slotOn(l.view.state), Channel: l.channel(), Write: l.host.self.next()}, actors: g.actors}
	f.write = g.stage.Write(f.id, l.cost())
	if f.write == nil { // nothing changes after all
		l.queue = append(g.actors, l.queue...)
		return l.read(now)
	}
	f.exact = f.write.Exact()
	for _, r := range f.actors {
		r.phase = sent
		f.books = f.books || r.Books()
	}
	l.pace.sent = now
	return l.launch(f, now)
}

// channel returns one that no message under way has. The lane is locked.
func (l sender) channel() int {
	taken := [schema.ChannelCount]bool{}
	for _, f := range l.out {
		taken[f.id.Channel] = true
	}
	return max(slices.Index(taken[:], false), 0)
}

// launch notes that a message leaves. The lane is locked.
func (l sender) launch(f *flight, now time.Time) *flight {
	l.events++
	f.solo = len(l.out) == 0
	f.asked, f.at, f.sent, f.until = l.events, l.view.now, now, now.Add(l.host.cfg.Budget)
	f.within = l.pace.attempt(l.host.cfg.Attempt)
	l.out = append(l.out, f)
	l.reckon()
	return f
}

// fly sends a message, again where that is right, and concludes it.
func (l sender) fly(f *flight) {
	s := l.host
	for {
		got, err := l.exchange(f)
		l.mu.Lock()
		now := s.cfg.Now()
		again := l.conclude(f, got, err, now)
		l.mu.Unlock()
		if !again {
			return
		}
		s.Counters.Resent.Add(1)
		_ = awsdb.Pause(s.stopped, s.cfg.Loop, max(f.tries, 1)) // cut short when the lanes end
	}
}

// reply is what came of one copy of a message.
type reply struct {
	item    map[string]types.AttributeValue
	refused bool // the condition of a write did not hold; item is what refused it
}

// exchange sends one copy of a message.
func (l sender) exchange(f *flight) (reply, error) {
	s := l.host
	ctx, cancel := s.cfg.Loop.Within(s.stopped, f.within)
	defer cancel()
	f.tries++
	f.sent = s.cfg.Now()
	s.health.sent(f.sent)
	got, err := l.transmit(ctx, f)
	s.health.ended(s.cfg.Now(), err == nil || got.refused || errors.Is(awsdb.KindOf(err), limiter.ErrInvalid) || awsdb.Retryable(err))
	return got, err
}

// transmit makes the call of a message.
func (l sender) transmit(ctx context.Context, f *flight) (reply, error) {
	s := l.host
	switch {
	case f.put != nil:
		_, err := s.cfg.Client.PutItem(ctx, f.put)
		return l.answered(f.put.Item, err)
	case f.write == nil || f.asks:
		s.Counters.Reads.Add(1)
		key := l.key
		if f.peek != nil {
			key = l.site.Key(f.peek.index)
		}
		out, err := s.cfg.Client.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(s.cfg.Table), Key: key.Attributes(), ConsistentRead: aws.Bool(true)})
		if err != nil {
			return reply{}, err
		}
		return reply{item: out.Item}, nil
	case f.write.Creates():
		in := f.write.Put(s.cfg.Table, schema.NewBucketItem(l.site.Namespace, l.site.Bucket, l.index))
		_, err := s.cfg.Client.PutItem(ctx, in)
		return l.answered(in.Item, err)
	}
	out, err := s.cfg.Client.UpdateItem(ctx, f.write.Update(s.cfg.Table, l.key))
	if err != nil {
		return l.answered(nil, err)
	}
	return l.answered(out.Attributes, nil)
}

// answered is the reply to a write.
func (l sender) answered(item map[string]types.AttributeValue, err error) (reply, error) {
	if !errors.Is(err, awsdb.ErrOutage) {
		l.host.Counters.Writes.Add(1)
	}
	if found, refused := awsdb.ConditionItem(err); refused {
		l.host.Counters.Refused.Add(1)
		return reply{item: found, refused: true}, nil
	}
	return reply{item: item}, err
}

// parse reads an item; nil when there is none.
func (l sender) parse(item map[string]types.AttributeValue) (*schema.Bucket, error) {
	if len(item) == 0 {
		return nil, nil //nolint:nilnil // no item is a state of the bucket
	}
	var known *limiter.Limits
	if l.view.state != nil {
		known = l.view.state.Limits
	}
	return schema.ParseBucket(l.host.cfg.Table, l.key, item, known)
}

// cost is how many write units a write of the lane counts: its own, and those of writes that
// were refused.
func (l sender) cost() int64 { return l.units() + l.unpaid }

// units is how many write units a write of the item takes.
func (l sender) units() int64 {
	if l.view.state == nil {
		return 1
	}
	const unit = 1024
	return int64(l.view.state.Size+unit-1) / unit
}
