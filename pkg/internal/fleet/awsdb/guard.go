package awsdb

import (
	"context"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// Guard has the items of a table. It asks a breaker before each call, and checks each reply.
type Guard struct {
	items Items
	*circuit
}

// circuit is what guards of one server share.
type circuit struct {
	cfg      GuardConfig
	breakers []breaker // of calls for several parts, and then those of the parts
	herald   herald
	wrong    wrongReplies
}

// GuardConfig configures a guard. Now and Loop must be set.
type GuardConfig struct {
	Now     func() time.Time
	Loop    Loop
	Observe func(State)  // called when an outage begins or ends; nil = not called
	Logger  *slog.Logger // gets a line about replies that DynamoDB never gives; nil = none
	// Part returns which of Parts parts of the server a call is for, by its writes or its input. Each part has outages of
	// its own. It reports false for a call that is for several of them. nil = the server has one part.
	Part  func(in any) (part int, one bool)
	Parts int
}

// NewGuard puts a breaker before the items of a table.
func NewGuard(items Items, cfg GuardConfig) *Guard {
	return &Guard{items, &circuit{cfg: cfg, breakers: make([]breaker, 1+cfg.Parts), herald: herald{tell: cfg.Observe}}}
}

// For returns a guard of other items of the same server: it has the same breaker and counts.
func (g *Guard) For(items Items) *Guard { return &Guard{items, g.circuit} }

// breaker returns the one that a call belongs to, by its input.
func (g *circuit) breaker(in any) *breaker {
	if g.cfg.Part != nil {
		if part, one := g.cfg.Part(in); one { // rule: an outage of a part leaves the calls for the others
			return &g.breakers[1+part]
		}
	}
	return &g.breakers[0]
}

// State returns whether DynamoDB answers: the worst of its parts.
func (g *circuit) State() State {
	worst := g.breakers[0].look()
	for i := range g.breakers[1:] {
		s := g.breakers[1+i].look()
		available := worst.Condition == Available && s.Condition == Available
		if s.Condition > worst.Condition || available && s.Since.After(worst.Since) {
			worst = s
		}
	}
	return worst
}

// FailingSince returns when DynamoDB began to fail: the time of the first failed call since
// the last answer, or of the first of the outage. It is zero while calls are answered.
func (g *circuit) FailingSince() (first time.Time) {
	for i := range g.breakers {
		if at := g.breakers[i].failingSince(); !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// Outages returns how many outages there were, and whether there is one now.
func (g *circuit) Outages() (n int64, open bool) {
	for i := range g.breakers {
		outages, now := g.breakers[i].counted()
		n, open = n+outages, open || now
	}
	return n, open
}

// WrongReplies returns how many replies there were that DynamoDB never gives to their calls.
func (g *circuit) WrongReplies() int64 { return g.wrong.total() }

// Silent begins an outage unless there is one: calls wait since a time, and no call has been
// answered for so long that DynamoDB counts as unavailable.
func (g *circuit) Silent(since time.Time, cause error) {
	for i := range g.breakers {
		if g.breakers[i].silent(g.cfg.Now(), since, cause, uint16(g.cfg.Loop.Draw(1<<16))) { // #nosec G115 -- in range
			g.herald.changed.Store(true)
		}
	}
	g.herald.announce(g.State)
}

// reads reports whether a call changes nothing, by its input.
func reads(in any) bool {
	switch in.(type) {
	case *schema.ItemWrite, []*schema.ItemWrite, *dynamodb.BatchWriteItemInput:
		return false
	}
	return true
}

// guarded makes a call if the breaker allows it, and checks its reply. in is the input of the call, or its writes.
func guarded[I, O any](ctx context.Context, g *Guard, in I, call func() (O, error)) (out O, err error) {
	start, of := g.cfg.Now(), g.breaker(in)
	p, err := of.allow(start, reads(in))
	if err != nil {
		return out, err
	}
	out, err = call()
	err = CheckReply(in, out, err)
	end := g.cfg.Now()
	g.wrong.saw(ctx, g.cfg.Logger, err, end)
	v, r := verdictOf(ctx, err, start, end), uint16(0)
	if v != answered {
		r = uint16(g.cfg.Loop.Draw(1 << 16)) // #nosec G115 -- in range
	}
	if of.done(end, p, v, err, r) {
		g.herald.changed.Store(true)
	}
	g.herald.announce(g.State)
	if err != nil {
		var none O
		return none, err
	}
	return out, nil
}

// Write implements [Items].
func (g *Guard) Write(ctx context.Context, w *schema.ItemWrite) (map[string]types.AttributeValue, error) {
	return guarded(ctx, g, w, func() (map[string]types.AttributeValue, error) { return g.items.Write(ctx, w) })
}

// Transact implements [Items].
func (g *Guard) Transact(ctx context.Context, token string, writes []*schema.ItemWrite) error {
	_, err := guarded(ctx, g, writes, func() (struct{}, error) { return struct{}{}, g.items.Transact(ctx, token, writes) })
	return err
}

// GetItem implements [Items].
func (g *Guard) GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return guarded(ctx, g, in, func() (*dynamodb.GetItemOutput, error) { return g.items.GetItem(ctx, in, opts...) })
}

// BatchGetItem implements [Items].
func (g *Guard) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	return guarded(ctx, g, in, func() (*dynamodb.BatchGetItemOutput, error) { return g.items.BatchGetItem(ctx, in, opts...) })
}

// BatchWriteItem implements [Items].
func (g *Guard) BatchWriteItem(ctx context.Context, in *dynamodb.BatchWriteItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error) {
	return guarded(ctx, g, in, func() (*dynamodb.BatchWriteItemOutput, error) { return g.items.BatchWriteItem(ctx, in, opts...) })
}

// Query implements [Items].
func (g *Guard) Query(ctx context.Context, in *dynamodb.QueryInput, opts ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return guarded(ctx, g, in, func() (*dynamodb.QueryOutput, error) { return g.items.Query(ctx, in, opts...) })
}

// DescribeTable implements [Items].
func (g *Guard) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, opts ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	return guarded(ctx, g, in, func() (*dynamodb.DescribeTableOutput, error) { return g.items.DescribeTable(ctx, in, opts...) })
}
