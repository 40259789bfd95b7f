package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// streams is the API of DynamoDB Streams in memory. Its shards are closed and followed by others, its lists come
// in pages, its iterators expire, and calls are throttled, as those of AWS.
type streams struct {
	mu     sync.Mutex
	dice   *rand.Rand
	shards []types.Shard
	open   map[string]bool
	items  map[string][]types.Record // by shard
	read   map[string]int            // how many records of a shard were read
	early  []string                  // shards that were read before the end of their parent
	calls  int
	next   int // number of the next record
	made   int // number of the next shard
	ended  bool
}

func newStreams(seed uint64) *streams {
	s := &streams{dice: rand.New(rand.NewPCG(seed, 5)), open: map[string]bool{}, items: map[string][]types.Record{}, read: map[string]int{}} // #nosec G404 -- of a test
	s.add("")
	s.add("")
	return s
}

// add opens a shard.
func (s *streams) add(parent string) {
	id := fmt.Sprintf("shardId-%020d-%08x", time.Now().UnixMilli(), s.made)
	s.made++
	sh := types.Shard{ShardId: &id}
	if parent != "" {
		sh.ParentShardId = &parent
	}
	s.shards = append(s.shards, sh)
	s.open[id] = true
}

// reshard closes a shard that is open, and opens one or two that follow it.
func (s *streams) reshard() {
	s.mu.Lock()
	defer s.mu.Unlock()
	open := slices.Sorted(maps.Keys(s.open))
	parent := open[s.dice.IntN(len(open))]
	delete(s.open, parent)
	for range 1 + s.dice.IntN(2) {
		s.add(parent)
	}
	s.dice.Shuffle(len(s.shards), func(i, j int) { s.shards[i], s.shards[j] = s.shards[j], s.shards[i] })
}

// drop removes a shard with its records, as AWS does a day after its end.
func (s *streams) drop(shard string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, shard)
	delete(s.items, shard)
	s.shards = slices.DeleteFunc(s.shards, func(sh types.Shard) bool { return *sh.ShardId == shard })
}

// write appends a record in which a bucket's count rises, to a shard that is open.
func (s *streams) write(entity string, before, after int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	open := slices.Sorted(maps.Keys(s.open))
	shard := open[s.dice.IntN(len(open))]
	key := schema.BucketKey("namespaceid", limiter.BucketKey{Entity: entity, Resource: "r"}, 0)
	image := func(consumed int64) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{
			"PK": &types.AttributeValueMemberS{Value: key.PK}, "SK": &types.AttributeValueMemberS{Value: key.SK},
			schema.LimitAttr("l", schema.LimitConsumed): &types.AttributeValueMemberN{Value: strconv.FormatInt(consumed, 10)},
		}
	}
	s.next++
	keys := image(0)
	delete(keys, schema.LimitAttr("l", schema.LimitConsumed))
	s.items[shard] = append(s.items[shard], types.Record{EventName: types.OperationTypeModify, Dynamodb: &types.StreamRecord{
		SequenceNumber: aws.String(fmt.Sprintf("%021d", s.next)), ApproximateCreationDateTime: aws.Time(time.Now()),
		Keys: keys, OldImage: image(before), NewImage: image(after),
	}})
}

// fails counts a call, and reports an error of some of them.
func (s *streams) fails() error {
	if s.ended {
		return &types.ResourceNotFoundException{Message: aws.String("Requested resource not found: Stream does not exist")}
	}
	s.calls++
	if s.dice.IntN(12) == 0 {
		return &types.LimitExceededException{Message: aws.String("slow down")}
	}
	return nil
}

func (s *streams) DescribeStream(_ context.Context, in *dynamodbstreams.DescribeStreamInput, _ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fails(); err != nil {
		return nil, err
	}
	at := slices.IndexFunc(s.shards, func(sh types.Shard) bool { return *sh.ShardId == aws.ToString(in.ExclusiveStartShardId) }) + 1
	end := min(at+2, len(s.shards))
	out := &types.StreamDescription{Shards: slices.Clone(s.shards[at:end])}
	if end < len(s.shards) {
		out.LastEvaluatedShardId = s.shards[end-1].ShardId
	}
	return &dynamodbstreams.DescribeStreamOutput{StreamDescription: out}, nil
}

func (s *streams) GetShardIterator(_ context.Context, in *dynamodbstreams.GetShardIteratorInput, _ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fails(); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(s.shards, func(sh types.Shard) bool { return *sh.ShardId == *in.ShardId }) {
		return nil, &types.ResourceNotFoundException{Message: aws.String("Requested resource not found: Shard does not exist")}
	}
	at := 0
	if in.ShardIteratorType == types.ShardIteratorTypeAfterSequenceNumber {
		after := aggregator.Sequence(*in.SequenceNumber)
		at = slices.IndexFunc(s.items[*in.ShardId], func(r types.Record) bool { return aggregator.Sequence(*r.Dynamodb.SequenceNumber).Compare(after) > 0 })
		if at < 0 {
			at = len(s.items[*in.ShardId])
		}
	}
	return &dynamodbstreams.GetShardIteratorOutput{ShardIterator: s.iterator(*in.ShardId, at)}, nil
}

func (s *streams) iterator(shard string, at int) *string {
	return aws.String(fmt.Sprint(shard, " ", at, " ", s.calls))
}

func (s *streams) GetRecords(_ context.Context, in *dynamodbstreams.GetRecordsInput, _ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fails(); err != nil {
		return nil, err
	}
	parts := strings.Fields(*in.ShardIterator)
	at, err := strconv.Atoi(parts[1])
	made, madeErr := strconv.Atoi(parts[2])
	if err != nil || madeErr != nil {
		return nil, errors.Join(err, madeErr)
	}
	if s.calls-made > 200 {
		return nil, &types.ExpiredIteratorException{Message: aws.String("too old")}
	}
	shard := parts[0]
	end := min(at+3, len(s.items[shard]))
	out := &dynamodbstreams.GetRecordsOutput{Records: slices.Clone(s.items[shard][at:end])}
	s.read[shard] = max(s.read[shard], end)
	if parent := s.parent(shard); end > at && s.read[parent] < len(s.items[parent]) {
		s.early = append(s.early, shard)
	}
	if s.open[shard] || end < len(s.items[shard]) {
		out.NextShardIterator = s.iterator(shard, end)
	}
	return out, nil
}

func (s *streams) parent(shard string) string {
	at := slices.IndexFunc(s.shards, func(sh types.Shard) bool { return *sh.ShardId == shard })
	return aws.ToString(s.shards[at].ParentShardId)
}

// streaming is a table that has a stream.
type streaming struct{ *dynamofake.DB }

func (t streaming) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, opts ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	out, err := t.DB.DescribeTable(ctx, in, opts...)
	if err == nil {
		described := *out.Table
		described.LatestStreamArn, described.LatestStreamLabel = aws.String("arn"), aws.String("label")
		described.StreamSpecification = dynamo.TableInput("buckets").StreamSpecification
		out.Table = &described
	}
	return out, err
}

// The stream closes shards and opens others all the time, while three processes read it, of which one ends and
// another one comes. Each record counts once, and each shard is read after its parent.
func TestResharding(t *testing.T) {
	for seed := range uint64(4) {
		synctest.Test(t, func(t *testing.T) {
			db, from := dynamofake.New(), newStreams(seed)
			if err := dynamo.CreateTable(t.Context(), streaming{db}, "buckets"); err != nil {
				t.Fatal(err)
			}
			open := func() *dynamo.Stream {
				s, err := dynamo.OpenStream(t.Context(), streaming{db}, from, "buckets", nil)
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			var processes sync.WaitGroup
			start := func(owner string) (p *aggregator.Poller, stop func()) {
				s := open()
				p, err := aggregator.New(aggregator.Config{Source: s, Snapshots: s, Leases: s, Owner: owner, Windows: []limiter.UsageWindow{limiter.UsageMonth}})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				processes.Go(func() {
					defer close(done)
					if err := p.Run(ctx); err != nil {
						t.Errorf("%s: %v", owner, err)
					}
				})
				return p, func() { cancel(); <-done }
			}
			var a, c *aggregator.Poller
			var stopA, stopB, stopC func()
			const writes = 300
			for i := range int64(writes) {
				from.write(fmt.Sprint("e", i%3), 10*i, 10*i+1+i%5)
				if i%20 == 19 {
					from.reshard()
				}
				switch i {
				case writes / 4: // there are generations of shards that are closed
					a, stopA = start("a")
					_, stopB = start("b")
				case writes / 2:
					stopB()
					c, stopC = start("c")
				}
				time.Sleep(time.Second)
			}
			time.Sleep(5 * time.Minute)
			shared := func() bool { // not while a shard goes from one to the other
				ofA, ofC := a.Stats().Shards, c.Stats().Shards
				return ofA > 0 && ofC > 0 && ofA+ofC == int64(len(from.open))
			}
			for wait := 0; !shared(); wait++ {
				if wait == 60 {
					t.Fatalf("a reads %d and c %d shards, of %d", a.Stats().Shards, c.Stats().Shards, len(from.open))
				}
				time.Sleep(time.Second)
			}
			stopA()
			stopC()
			processes.Wait()
			from.check(t)
			if got, want := used(t, db), int64(writes*3); got != want {
				t.Errorf("seed %d: usage of %d millitokens, want %d", seed, got, want)
			}
		})
	}
}

// used adds up the usage in a table.
func used(t *testing.T, db *dynamofake.DB) (sum int64) {
	t.Helper()
	for entity := range 3 {
		of := schema.UsageOf{Entity: fmt.Sprint("e", entity), Resource: "r", Window: limiter.UsageMonth, Start: limiter.UsageMonth.Start(time.Now())}
		out, err := db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("buckets"), Key: of.Key("namespaceid").Attributes()})
		if err != nil {
			t.Fatal(err)
		}
		u, err := schema.ParseUsage("buckets", out.Item)
		if err != nil {
			t.Fatal(err)
		}
		sum += u.Limits[0].Tokens
	}
	return sum
}

// check requires that each shard was read after its parent, and that there were many.
func (s *streams) check(t *testing.T) {
	t.Helper()
	if len(s.early) > 0 || len(s.read) < 10 {
		t.Errorf("of %d shards %q were read before the end of their parent", len(s.read), s.early)
	}
}
