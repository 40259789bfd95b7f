package dynamo

import (
	"context"
	"iter"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/internal/dynamofake"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
)

// shardRun is a step of a lane: a coroutine that stops where the lane waits for a
// reply.
type shardRun struct {
	lane    *shardLane
	carried []*request // the requests that the step was begun with
	next    func() (struct{}, bool)
	end     func()
	yield   func(struct{}) bool
	message *shardMessage // that it waits for
	dead    bool          // its process has ended
}

// shardMessage is a message under way. It may arrive late, or twice, and when nobody
// waits for it any more.
type shardMessage struct {
	run      *shardRun
	in       any // *dynamodb.GetItemInput and others
	index    int // of the shard
	signed   int64
	moment   int64 // that it was planned for
	actors   []effect
	gives    bool
	answered bool
	out      any
	err      error
}

// shardClient is how a lane sends messages.
type shardClient struct {
	*dynamofake.DB
	sim *shardSim
}

func (c shardClient) GetItem(_ context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if c.sim.get != nil && c.sim.get(c.sim, shardOf(in)) {
		return &dynamodb.GetItemOutput{}, nil
	}
	return exchange[dynamodb.GetItemOutput](c.sim, in)
}

func (c shardClient) PutItem(_ context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	if c.sim.put != nil {
		c.sim.put(in)
	}
	return exchange[dynamodb.PutItemOutput](c.sim, in)
}

func (c shardClient) UpdateItem(_ context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if c.sim.update != nil {
		c.sim.update(in)
	}
	return exchange[dynamodb.UpdateItemOutput](c.sim, in)
}

// exchange sends a message of the coroutine that runs, and waits for its reply.
func exchange[O any](s *shardSim, in any) (*O, error) {
	run := s.current
	if run.dead {
		return nil, context.Canceled
	}
	m := &shardMessage{run: run, in: in, signed: s.now, moment: run.lane.knows.now, index: shardOf(in), actors: run.actors()}
	m.gives = slices.ContainsFunc(run.carried, func(r *request) bool { return r.state.Load() == sent && r.gives() })
	run.message = m
	s.net = append(s.net, m)
	if !run.yield(struct{}{}) {
		return nil, context.Canceled
	}
	out, _ := m.out.(*O)
	return out, m.err
}

// shardOf returns the shard that a message is for.
func shardOf(in any) int {
	stringOf := func(v types.AttributeValue) string { return v.(*types.AttributeValueMemberS).Value }
	switch in := in.(type) {
	case *dynamodb.GetItemInput:
		return schema.ShardIndex(schema.Key{PK: stringOf(in.Key[schema.AttrPK])})
	case *dynamodb.PutItemInput:
		return schema.ShardIndex(schema.Key{PK: stringOf(in.Item[schema.AttrPK])})
	case *dynamodb.UpdateItemInput:
		return schema.ShardIndex(schema.Key{PK: stringOf(in.Key[schema.AttrPK])})
	}
	return -1
}

// actors are the requests that the write which is sent now decides.
func (run *shardRun) actors() []effect {
	carried := slices.Clone(run.carried)
	slices.SortStableFunc(carried, func(x, y *request) int { // as a plan has them
		switch {
		case x.gives() == y.gives():
			return 0
		case x.gives():
			return -1
		}
		return 1
	})
	return effectsOf(carried)
}

// start begins a step of a lane.
func (s *shardSim) start(l *shardLane) {
	run := &shardRun{lane: l, carried: slices.Clone(l.pending)}
	run.next, run.end = iter.Pull(func(yield func(struct{}) bool) {
		run.yield = yield
		l.pending = l.replica.store.step(l.lane, l.pending)
	})
	s.resume(run)
}

// resume has a coroutine go on until its next message, or its end.
func (s *shardSim) resume(run *shardRun) {
	s.current = run
	_, more := run.next()
	s.current = nil
	if run.lane.run = run; !more {
		run.lane.run = nil
	}
}

// deliver has a message arrive, and its reply be sent, unless it is lost.
func (s *shardSim) deliver(i int) {
	m := s.net[i]
	again := !m.gives && s.lost && s.r.IntN(6) == 0
	if !again || s.now-m.signed > shardLife*s.unit {
		s.net = slices.Delete(s.net, i, i+1)
	}
	if s.now-m.signed > shardLife*s.unit {
		s.timeout(m)
		return
	}
	out, err := s.apply(m)
	if s.lost && s.r.IntN(5) == 0 {
		s.timeout(m)
	} else {
		m.answer(out, err)
	}
}

// timeout is when a lane has waited for long enough.
func (s *shardSim) timeout(m *shardMessage) { m.answer(nil, context.DeadlineExceeded) }

func (m *shardMessage) answer(out any, err error) {
	if !m.answered {
		m.answered, m.out, m.err = true, out, err
	}
}

// apply does what a message asks for.
func (s *shardSim) apply(m *shardMessage) (out any, err error) {
	ctx := context.Background()
	switch in := m.in.(type) {
	case *dynamodb.GetItemInput:
		return s.db.GetItem(ctx, in)
	case *dynamodb.PutItemInput:
		out, err = s.db.PutItem(ctx, in)
	case *dynamodb.UpdateItemInput:
		out, err = s.db.UpdateItem(ctx, in)
	}
	if err == nil {
		s.applied(m)
		if s.after != nil {
			s.after(s)
		}
	} else if _, refused := awsdb.ConditionItem(err); !refused {
		s.failf("a write that DynamoDB refuses: %v", err)
	}
	return out, err
}

// die ends a replica's process. What it sent is still under way.
func (s *shardSim) die(r *shardReplica) {
	for _, l := range r.lanes {
		if l.run != nil {
			s.current, l.run.dead = l.run, true
			l.run.end()
			s.current = nil
		}
	}
	for _, c := range s.calls {
		c.died = c.died || c.replica == r
		c.over = c.over || c.died
	}
}

// stop ends everything.
func (s *shardSim) stop() {
	for _, r := range s.replicas {
		s.die(r)
	}
	s.net = nil
}

func doneContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
