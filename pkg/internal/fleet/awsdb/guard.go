package awsdb

import (
	"context"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Guard is a client that asks a breaker before each call, and checks each reply.
type Guard struct {
	client Client
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
	// Part returns which of Parts parts of the server a call is for, by its input. Each part has outages of its own. It
	// reports false for a call that is for several of them. nil = the server has one part.
	Part  func(in any) (part int, one bool)
	Parts int
}

// NewGuard puts a breaker before a client.
func NewGuard(client Client, cfg GuardConfig) *Guard {
	return &Guard{client, &circuit{cfg: cfg, breakers: make([]breaker, 1+cfg.Parts), herald: herald{tell: cfg.Observe}}}
}

// For returns a guard of another client of the same server: it has the same breaker and counts.
func (g *Guard) For(client Client) *Guard { return &Guard{client, g.circuit} }

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

// guarded makes a call if the breaker allows it.
func guarded[I, O any](ctx context.Context, g *Guard, call func(context.Context, *I, ...func(*dynamodb.Options)) (*O, error), in *I, opts []func(*dynamodb.Options)) (*O, error) {
	start, of := g.cfg.Now(), g.breaker(in)
	p, err := of.allow(start)
	if err != nil {
		return nil, err
	}
	out, err := call(ctx, in, opts...)
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
		return nil, err
	}
	return out, nil
}

// UpdateItem implements [Client].
func (g *Guard) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return guarded(ctx, g, g.client.UpdateItem, in, opts)
}

// PutItem implements [Client].
func (g *Guard) PutItem(ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return guarded(ctx, g, g.client.PutItem, in, opts)
}

// GetItem implements [Client].
func (g *Guard) GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return guarded(ctx, g, g.client.GetItem, in, opts)
}

// DeleteItem implements [Client].
func (g *Guard) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	return guarded(ctx, g, g.client.DeleteItem, in, opts)
}

// BatchGetItem implements [Client].
func (g *Guard) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	return guarded(ctx, g, g.client.BatchGetItem, in, opts)
}

// BatchWriteItem implements [Client].
func (g *Guard) BatchWriteItem(ctx context.Context, in *dynamodb.BatchWriteItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error) {
	return guarded(ctx, g, g.client.BatchWriteItem, in, opts)
}

// Query implements [Client].
func (g *Guard) Query(ctx context.Context, in *dynamodb.QueryInput, opts ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return guarded(ctx, g, g.client.Query, in, opts)
}

// TransactWriteItems implements [Client].
func (g *Guard) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return guarded(ctx, g, g.client.TransactWriteItems, in, opts)
}

// CreateTable implements [Client].
func (g *Guard) CreateTable(ctx context.Context, in *dynamodb.CreateTableInput, opts ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error) {
	return guarded(ctx, g, g.client.CreateTable, in, opts)
}

// DescribeTable implements [Client].
func (g *Guard) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, opts ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	return guarded(ctx, g, g.client.DescribeTable, in, opts)
}

// UpdateTimeToLive implements [Client].
func (g *Guard) UpdateTimeToLive(ctx context.Context, in *dynamodb.UpdateTimeToLiveInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error) {
	return guarded(ctx, g, g.client.UpdateTimeToLive, in, opts)
}
