package awscmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const shard = "shardId-00000001795366485046-77c50797"

var errDown = errors.New("the table is down")

// lambdaTable is the usage of buckets in memory, and an archive. fault says whether a write fails, and
// whether it is applied then.
type lambdaTable struct {
	used      map[aggregator.Bucket]int64
	positions map[aggregator.Bucket]aggregator.Sequence
	archive   map[string]bool // ids of events
	fault     func() (applied bool, err error)

	mu sync.Mutex
}

func newLambdaTable() *lambdaTable {
	return &lambdaTable{
		used: map[aggregator.Bucket]int64{}, positions: map[aggregator.Bucket]aggregator.Sequence{}, archive: map[string]bool{},
		fault: func() (bool, error) { return true, nil },
	}
}

func (t *lambdaTable) Shards(context.Context) ([]aggregator.Shard, error) { return nil, errDown }

// Record reads a record whose partition key is an entity, and whose sort key is the amount that
// it consumed. One without an amount is an event that expired.
func (t *lambdaTable) Record(from *types.Record) aggregator.Record {
	text := func(name string) string {
		v, _ := from.Dynamodb.Keys[name].(*types.AttributeValueMemberS)
		if v == nil {
			return ""
		}
		return v.Value
	}
	r := aggregator.Record{Sequence: aggregator.Sequence(*from.Dynamodb.SequenceNumber), Key: text("PK"), Time: time.Unix(1_700_000_000, 0).UTC()}
	amount, err := strconv.ParseInt(text("SK"), 10, 64)
	if err != nil {
		r.Other, r.Expired = true, &aggregator.Expired{Event: limiter.AuditEvent{ID: string(r.Sequence), Time: r.Time}}
		return r
	}
	r.Bucket = aggregator.Bucket{Namespace: "ns", Entity: text("PK"), Resource: "r"}
	r.New = &aggregator.Image{Consumed: map[string]int64{"rpm": amount}}
	return r
}

func (t *lambdaTable) Add(_ context.Context, c *aggregator.Change) (aggregator.Sequence, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	applied, err := t.fault()
	if !applied {
		return "", err
	}
	b := c.Snapshot.Bucket
	if has, found := t.positions[b]; found && has.Compare(c.First) >= 0 {
		return has, err
	}
	t.positions[b] = c.Last
	t.used[b] += c.Used["rpm"]
	return "", err
}

func (t *lambdaTable) Put(_ context.Context, name string, _ []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	applied, err := t.fault()
	if applied {
		t.archive[name] = true
	}
	return err
}

// rawRecord is a record in the form of Lambda.
func rawRecord(sequence int, entity, amount string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"eventName":"MODIFY","dynamodb":{"SequenceNumber":"%d","Keys":{"PK":{"S":%q},"SK":{"S":%q}}}}`, sequence, entity, amount))
}

// lambdaStore is a stream, its usage and an archive.
type lambdaStore interface {
	FunctionStream
	aggregator.Archive
}

func newFunction(t interface{ Fatalf(string, ...any) }, to lambdaStore, ids map[string]int, metrics io.Writer) *Function {
	f, err := NewFunction(FunctionConfig{
		Stream: to, Archive: to, Windows: []limiter.UsageWindow{limiter.UsageHour}, Metrics: metrics, Table: "limits",
		Encode: func(e *aggregator.Expired) ([]byte, error) {
			ids[e.Event.ID]++
			return []byte(e.Event.ID), nil
		},
	})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return f
}

// Lambda calls from the first failure on, or with all again where an answer is lost, in batches
// of any size. In the end each record counts once, and each event is in the archive.
func TestCallsAreRepeated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		to, ids := newLambdaTable(), map[string]int{}
		faults := rapid.SliceOfN(rapid.IntRange(0, 5), 40, 40).Draw(t, "faults")
		turn := 0
		to.fault = func() (bool, error) {
			turn++
			switch faults[turn%len(faults)] {
			case 0:
				return false, errDown
			case 1:
				return true, errDown
			}
			return true, nil
		}
		var records []json.RawMessage
		want, events := int64(0), 0
		for i := range rapid.IntRange(1, 40).Draw(t, "records") {
			n := rapid.IntRange(-1, 9).Draw(t, "amount")
			if n < 0 {
				events++
				records = append(records, rawRecord(i+1, "audit", "event"))
				continue
			}
			want += int64(n)
			records = append(records, rawRecord(i+1, "ada", strconv.Itoa(n)))
		}
		f := newFunction(t, to, ids, nil)
		for at, calls := 0, 0; at < len(records); calls++ {
			if calls > 1000 {
				t.Fatalf("no end at record %d", at)
			}
			end := min(len(records), at+rapid.IntRange(1, 12).Draw(t, "size"))
			answer, err := f.Handle(context.Background(), LambdaEvent{Records: records[at:end], ShardID: shard})
			if err != nil || answer.State == nil {
				t.Fatalf("%+v, %v", answer, err)
			}
			switch {
			case calls%3 == 2: // the answer is lost
			case len(answer.BatchItemFailures) > 0:
				failed, err := strconv.Atoi(answer.BatchItemFailures[0].ItemIdentifier)
				if err != nil || failed <= at || failed > end {
					t.Fatalf("records %d to %d, and %d is reported: %v", at+1, end, failed, err)
				}
				at = failed - 1
			default:
				at = end
			}
		}
		if got := to.used[aggregator.Bucket{Namespace: "ns", Entity: "ada", Resource: "r"}]; got != want {
			t.Fatalf("usage %d, want %d", got, want)
		}
		if len(ids) != events || events > 0 && len(to.archive) == 0 {
			t.Fatalf("%d of %d events archived in %d objects", len(ids), events, len(to.archive))
		}
	})
}

// Records that come twice count once, and those out of order count too; after a write that failed
// the first of all is reported.
func TestRecordsTwiceAndOutOfOrder(t *testing.T) {
	to := newLambdaTable()
	f := newFunction(t, to, map[string]int{}, nil)
	e := LambdaEvent{ShardID: shard, Records: []json.RawMessage{rawRecord(9, "ada", "1"), rawRecord(8, "ada", "2"), rawRecord(10, "ada", "4"), rawRecord(8, "ada", "2"), rawRecord(10, "ada", "4")}}
	down := true
	to.fault = func() (bool, error) { return !down, map[bool]error{true: errDown}[down] }
	if answer, err := f.Handle(t.Context(), e); err != nil || len(answer.BatchItemFailures) != 1 || answer.BatchItemFailures[0].ItemIdentifier != "8" {
		t.Errorf("%+v, %v; want a failure of 8", answer, err)
	}
	down = false
	for range 2 {
		if answer, err := f.Handle(t.Context(), e); err != nil || len(answer.BatchItemFailures) != 0 {
			t.Errorf("%+v, %v", answer, err)
		}
	}
	if answer, err := f.Handle(t.Context(), LambdaEvent{ShardID: shard, Records: []json.RawMessage{rawRecord(10, "ada", "4"), rawRecord(11, "ada", "8")}}); err != nil || len(answer.BatchItemFailures) != 0 {
		t.Errorf("%+v, %v", answer, err)
	}
	if got := to.used[aggregator.Bucket{Namespace: "ns", Entity: "ada", Resource: "r"}]; got != 1+2+4+8 {
		t.Errorf("usage %d, want 15", got)
	}
}

// The records of another source are not taken: the call fails, and nothing is written.
func TestOtherSources(t *testing.T) {
	for source, taken := range map[string]bool{
		`"eventSource":"aws:dynamodb","eventSourceARN":"arn:aws:dynamodb:eu-central-1:123456789012:table/limits/stream/2026-11-22T10:00:00.000"`:  true,
		`"eventSource":"aws:dynamodb","eventSourceARN":"arn:aws:dynamodb:eu-central-1:123456789012:table/staging/stream/2026-11-22T10:00:00.000"`: false,
		`"eventSource":"aws:kinesis","eventSourceARN":"arn:aws:kinesis:eu-central-1:123456789012:stream/limits"`:                                  false,
		`"eventSource":"aws:sqs"`: false,
		`"eventSource":7`:         true, // in no form, as a letter says
	} {
		to := newLambdaTable()
		f := newFunction(t, to, map[string]int{}, nil)
		record := json.RawMessage(strings.Replace(string(rawRecord(1, "ada", "1")), "{", "{"+source+",", 1))
		answer, err := f.Handle(t.Context(), LambdaEvent{ShardID: shard, Records: []json.RawMessage{record}})
		if taken != (err == nil) || !taken && !errors.Is(err, errSource) {
			t.Errorf("%s: %+v, %v", source, answer, err)
		}
		if !taken && len(to.used) > 0 {
			t.Errorf("%s: %v is written", source, to.used)
		}
	}
}

// A call ends with an answer before its time is over: records that are not written are
// reported.
func TestCallsEndInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := newLambdaTable()
		f := newFunction(t, to, map[string]int{}, nil)
		f.cfg.Stream = slowTable{to}
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		begun := time.Now()
		answer, err := f.Handle(ctx, LambdaEvent{Records: []json.RawMessage{rawRecord(7, "ada", "1"), rawRecord(8, "ada", "1")}, ShardID: shard})
		if err != nil || len(answer.BatchItemFailures) != 1 || answer.BatchItemFailures[0].ItemIdentifier != "7" {
			t.Errorf("%+v, %v", answer, err)
		}
		if took := time.Since(begun); took != 10*time.Second-defaultFunctionMargin {
			t.Errorf("it took %v", took)
		}
	})
}

// slowTable answers no write.
type slowTable struct{ *lambdaTable }

func (slowTable) Add(ctx context.Context, _ *aggregator.Change) (aggregator.Sequence, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

func TestMetricsOfACall(t *testing.T) {
	var out strings.Builder
	f := newFunction(t, newLambdaTable(), map[string]int{}, &out)
	f.cfg.Now = func() time.Time { return time.Unix(1_700_000_003, 0) }
	for _, e := range []LambdaEvent{{}, {ShardID: shard, Records: []json.RawMessage{rawRecord(1, "ada", "1"), rawRecord(2, "audit", ""), json.RawMessage(`7`)}}} {
		if answer, err := f.Handle(t.Context(), e); err != nil || len(answer.BatchItemFailures) != 0 {
			t.Errorf("%+v, %v", answer, err)
		}
	}
	var line map[string]any
	if err := json.Unmarshal([]byte(out.String()), &line); err != nil { // one line: the end of a window has none
		t.Fatalf("%v: %s", err, out.String())
	}
	for name, want := range map[string]any{"Records": 3.0, "Snapshots": 1.0, "DeadLetters": 1.0, "ArchivedEvents": 1.0, "Failures": 0.0, "AgeSeconds": 3.0, "Table": "limits"} {
		if line[name] != want {
			t.Errorf("%s: got %v, want %v", name, line[name], want)
		}
	}
	metadata, _ := line["_aws"].(map[string]any)
	directives, _ := metadata["CloudWatchMetrics"].([]any)
	if len(directives) != 1 || metadata["Timestamp"] != 1_700_000_003_000.0 {
		t.Fatalf("metadata %v", metadata)
	}
	for _, m := range directives[0].(map[string]any)["Metrics"].([]any) {
		if name := m.(map[string]any)["Name"].(string); line[name] == nil {
			t.Errorf("the line has no %s: %v", name, slices.Sorted(maps.Keys(line)))
		}
	}
}

// A call of records without a time has no age, which would be one of 292 years.
func TestACallWithoutATimeHasNoAge(t *testing.T) {
	var out strings.Builder
	f := newFunction(t, timeless{newLambdaTable()}, map[string]int{}, &out)
	if _, err := f.Handle(t.Context(), LambdaEvent{ShardID: shard, Records: []json.RawMessage{json.RawMessage(`7`)}}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `"AgeSeconds":0,`) {
		t.Error(out.String())
	}
}

// timeless reads records without their times.
type timeless struct{ *lambdaTable }

func (t timeless) Record(from *types.Record) aggregator.Record {
	r := t.lambdaTable.Record(from)
	r.Time = time.Time{}
	return r
}

func TestNewNeeds(t *testing.T) {
	for name, cfg := range map[string]FunctionConfig{"a stream": {}, "a form": {Stream: newLambdaTable(), Archive: newLambdaTable()}} {
		if _, err := NewFunction(cfg); !errors.Is(err, limiter.ErrInvalid) {
			t.Errorf("without %s: %v", name, err)
		}
	}
	f := newFunction(t, newLambdaTable(), map[string]int{}, nil)
	if _, err := f.Handle(t.Context(), LambdaEvent{Records: []json.RawMessage{rawRecord(1, "ada", "1")}}); !errors.Is(err, errNoShard) {
		t.Errorf("without a shard: %v", err)
	}
}
