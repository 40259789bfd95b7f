package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

const ns = "ns"

func read(t *testing.T, c *Catalog, refs ...limiter.Ref) ([]limiter.Record, uint64) {
	t.Helper()
	records := make([]limiter.Record, len(refs))
	generation, err := c.Read(t.Context(), ns, refs, records)
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	return records, generation
}

func putPerDay(t *testing.T, c *Catalog, ref limiter.Ref, tokens int64) {
	t.Helper()
	if err := c.PutLimits(t.Context(), ns, ref, limiter.Record{Limits: mustLimits(t, limiter.PerDay("l", tokens))}); err != nil {
		t.Fatalf("PutLimits: %v", err)
	}
}

func capacityOf(r limiter.Record) int64 {
	if r.Limits.Len() == 0 {
		return 0
	}
	return r.Limits.At(0).Capacity
}

// wantCalls requires the calls that fn makes.
func wantCalls(t *testing.T, db *dynamofake.DB, want map[string]int, fn func()) {
	t.Helper()
	before := db.Counts()
	fn()
	got := make(map[string]int)
	for op, n := range db.Counts() {
		n -= before[op]
		if n > 0 {
			got[op] = n
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// TestCallsOfTheCatalog: the calls of each method once the namespace is in use.
func TestCallsOfTheCatalog(t *testing.T) {
	db := dynamofake.New()
	c := newTestCatalog(t, db)
	chain := []limiter.Ref{limiter.EntityRef("e"), limiter.EntityLimitsRef("e", "r"), limiter.EntityLimitsRef("e", limiter.DefaultResource), limiter.ResourceLimitsRef("r"), limiter.SystemLimitsRef()}
	read(t, c)
	change := map[string]int{"BatchGetItem": 1, "TransactWriteItems": 1} // it reads the record that it changes, for the audit
	wantCalls(t, db, change, func() { putPerDay(t, c, chain[1], 1) })
	wantCalls(t, db, map[string]int{"BatchGetItem": 1}, func() { read(t, c, chain...) })
	wantCalls(t, db, map[string]int{"BatchGetItem": 1}, func() { read(t, c, append(chain, chain...)...) })
	wantCalls(t, db, map[string]int{}, func() { read(t, c) })
	wantCalls(t, db, map[string]int{"UpdateItem": 1}, func() {
		if err := c.RaiseGeneration(t.Context()); err != nil {
			t.Errorf("RaiseGeneration: %v", err)
		}
	})
	wantCalls(t, db, map[string]int{"BatchGetItem": 1, "TransactWriteItems": 1}, func() {
		if _, err := c.PutEntity(t.Context(), time.Unix(0, 0), ns, limiter.Entity{ID: "e"}); err != nil {
			t.Errorf("PutEntity: %v", err)
		}
	})
	wantCalls(t, db, map[string]int{"BatchGetItem": 1, "Query": 1, "TransactWriteItems": 1}, func() {
		if err := c.DeleteEntity(t.Context(), ns, "e"); err != nil {
			t.Errorf("DeleteEntity: %v", err)
		}
	})
}

// TestReadOfManyRefs: more than a batch holds, each once, none left out.
func TestReadOfManyRefs(t *testing.T) {
	db := dynamofake.New()
	c := newTestCatalog(t, db)
	var refs []limiter.Ref
	for i := range 250 {
		refs = append(refs, limiter.ResourceLimitsRef(fmt.Sprint("r", i)))
		if i%25 == 0 {
			putPerDay(t, c, refs[i], int64(i+1))
		}
	}
	refs = append(refs, refs...)
	var records []limiter.Record
	wantCalls(t, db, map[string]int{"BatchGetItem": 3}, func() { records, _ = read(t, c, refs...) })
	for i, r := range records {
		want := int64(0)
		if n := i % 250; n%25 == 0 {
			want = int64(n + 1)
		}
		if got := capacityOf(r); got != want {
			t.Errorf("record %d has the capacity %d, want %d", i, got, want)
		}
	}
}

// TestPartialBatches: an item that DynamoDB leaves out of a batch is asked for again,
// and in the end is an error. It never counts as "no limit".
func TestPartialBatches(t *testing.T) {
	db := dynamofake.New()
	c := newTestCatalog(t, db)
	refs := []limiter.Ref{limiter.SystemLimitsRef(), limiter.ResourceLimitsRef("r"), limiter.EntityLimitsRef("e", "r")}
	for i, ref := range refs {
		putPerDay(t, c, ref, int64(i+1))
	}
	partial := dynamofake.Step{Op: "BatchGetItem", Fault: dynamofake.Fault{Kind: dynamofake.Partial}}
	throttle := dynamofake.Step{Op: "BatchGetItem", Fault: dynamofake.Fault{Kind: dynamofake.Throttle}}
	db.SetPlan(dynamofake.Script(partial, throttle, partial))
	records, _ := read(t, c, refs...)
	for i, r := range records {
		if capacityOf(r) != int64(i+1) {
			t.Errorf("record %d of a partial batch has the capacity %d", i, capacityOf(r))
		}
	}
	if f := db.Faults(); f[dynamofake.Partial] == 0 || f[dynamofake.Throttle] == 0 {
		t.Errorf("injected %v; want partial batches and throttles", f)
	}
	for _, kind := range []dynamofake.Kind{dynamofake.Throttle, dynamofake.ServerError} {
		db.SetPlan(func(dynamofake.Call) dynamofake.Fault { return dynamofake.Fault{Kind: kind} })
		ctx, stop := context.WithTimeout(t.Context(), 30*time.Millisecond)
		_, err := c.Read(ctx, ns, refs, records)
		stop()
		if !errors.Is(err, limiter.ErrUnavailable) || errors.Is(err, limiter.ErrUncertain) {
			t.Errorf("%v without end: error = %v, want %q", kind, err, limiter.ErrUnavailable)
		}
	}
}

// TestPartialBatchOverHTTP: the same, as DynamoDB says it.
func TestPartialBatchOverHTTP(t *testing.T) {
	proxy := dynamotest.NewProxy(t, dynamotest.Start(t).URL, nil)
	c := newTestCatalog(t, dynamotest.NewClient(proxy.URL, nil))
	refs := []limiter.Ref{limiter.SystemLimitsRef(), limiter.ResourceLimitsRef("r")}
	for i, ref := range refs {
		putPerDay(t, c, ref, int64(i+1))
	}
	proxy.SetPlan(dynamofake.Script(dynamofake.Step{Op: "BatchGetItem", Fault: dynamofake.Fault{Kind: dynamofake.Partial}}))
	if records, _ := read(t, c, refs...); capacityOf(records[0]) != 1 || capacityOf(records[1]) != 2 {
		t.Errorf("a partial batch is read as %+v", records)
	}
	proxy.Require(t, dynamofake.Partial)
}

// TestChangesOfReplicas: replicas that change a namespace at once each make one
// change more, and none is lost.
func TestChangesOfReplicas(t *testing.T) {
	client := dynamotest.Start(t).Client(t)
	replicas := make([]*Catalog, 4)
	replicas[0] = newTestCatalog(t, client)
	for i := range replicas[1:] {
		replicas[i+1] = openTestCatalog(t, client, replicas[0].table.name)
	}
	const each = 5
	var g errgroup.Group
	for i, c := range replicas {
		g.Go(func() error {
			for n := range each {
				limits, err := limiter.NewLimits(limiter.PerDay("l", int64(n+1)))
				if err != nil {
					return err
				}
				if err := c.PutLimits(t.Context(), ns, limiter.ResourceLimitsRef(fmt.Sprint("r", i)), limiter.Record{Limits: limits}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatalf("PutLimits: %v", err)
	}
	for i, c := range replicas {
		if err := c.poll(t.Context()); err != nil {
			t.Fatalf("poll: %v", err)
		}
		records, generation := read(t, c, limiter.ResourceLimitsRef(fmt.Sprint("r", i)))
		want := schema.Counters{Changes: each * uint64(len(replicas))}.Generation()
		if capacityOf(records[0]) != each || generation != want {
			t.Errorf("replica %d reads the capacity %d at generation %d; want %d at %d", i, capacityOf(records[0]), generation, each, want)
		}
	}
}

// TestReplicasMakeNoCycle: of changes that make a cycle only together, one is refused.
func TestReplicasMakeNoCycle(t *testing.T) {
	db := dynamofake.New()
	a := newTestCatalog(t, db)
	b := openTestCatalog(t, db, a.table.name)
	for round := range 20 {
		x, y := fmt.Sprint("x", round), fmt.Sprint("y", round)
		var g errgroup.Group
		errs := make([]error, 2)
		for i, put := range []struct {
			c *Catalog
			e limiter.Entity
		}{{a, limiter.Entity{ID: x, Parent: y}}, {b, limiter.Entity{ID: y, Parent: x}}} {
			g.Go(func() error {
				_, errs[i] = put.c.PutEntity(t.Context(), time.Unix(0, 0), ns, put.e)
				return nil
			})
		}
		_ = g.Wait() // the errors are in errs
		if (errs[0] == nil) == (errs[1] == nil) || !errors.Is(errors.Join(errs...), limiter.ErrInvalid) {
			t.Errorf("round %d: errors %v; want one ErrInvalid", round, errs)
		}
	}
}

// TestVersionsNeverComeBack: a caller that read an entity before it was deleted does
// not replace the one that was created since.
func TestVersionsNeverComeBack(t *testing.T) {
	c := newTestCatalog(t, dynamofake.New())
	first, err := c.PutEntity(t.Context(), time.Unix(0, 0), ns, limiter.Entity{ID: "e"})
	if err != nil {
		t.Fatalf("PutEntity: %v", err)
	}
	if err := c.DeleteEntity(t.Context(), ns, "e"); err != nil {
		t.Fatalf("DeleteEntity: %v", err)
	}
	if _, err := c.PutEntity(t.Context(), time.Unix(0, 0), ns, limiter.Entity{ID: "e"}); err != nil {
		t.Fatalf("PutEntity after DeleteEntity: %v", err)
	}
	if _, err := c.PutEntity(t.Context(), time.Unix(0, 0), ns, first); !errors.Is(err, limiter.ErrConflict) {
		t.Errorf("PutEntity with a version from before: error = %v, want %q", err, limiter.ErrConflict)
	}
}

// TestChangesUnderFaults: with any outcome of a request the change is made once, with
// one audit event. If nothing was ever applied it is not made at all.
func TestChangesUnderFaults(t *testing.T) {
	client := dynamotest.Start(t)
	proxy := dynamotest.NewProxy(t, client.URL, nil)
	c := newTestCatalog(t, dynamotest.NewClient(proxy.URL, nil))
	ref := limiter.ResourceLimitsRef("r")
	kinds := []dynamofake.Kind{dynamofake.Throttle, dynamofake.Conflict, dynamofake.ServerError, dynamofake.AppliedError, dynamofake.LoseReply}
	for i, kind := range kinds {
		_, before := read(t, c)
		step := dynamofake.Step{Op: "TransactWriteItems", Fault: dynamofake.Fault{Kind: kind}}
		proxy.SetPlan(dynamofake.Script(step, step))
		putPerDay(t, c, ref, int64(i+1))
		records, after := read(t, c, ref)
		if after != before+(schema.Counters{Changes: 1}).Generation() || capacityOf(records[0]) != int64(i+1) {
			t.Errorf("%v: generation %d → %d, capacity %d; want one change to %d", kind, before, after, capacityOf(records[0]), i+1)
		}
	}
	proxy.Require(t, kinds...)
	events := len(eventsOf(t, c, ref))
	if events != len(kinds) {
		t.Errorf("%d audit events of %d changes", events, len(kinds))
	}
}

// TestChangeInDoubt: a caller that cannot wait for the outcome gets an error that
// says so, and the next change goes on from the stored state.
func TestChangeInDoubt(t *testing.T) {
	for _, kind := range []dynamofake.Kind{dynamofake.AppliedError, dynamofake.LoseReply, dynamofake.Throttle} {
		synctest.Test(t, func(t *testing.T) { // where no call takes so long that its outcome is unknown
			changeInDoubt(t, kind)
		})
	}
}

func changeInDoubt(t *testing.T, kind dynamofake.Kind) {
	t.Helper()
	db := dynamofake.New()
	c := newTestCatalog(t, db)
	read(t, c)
	db.SetPlan(func(call dynamofake.Call) dynamofake.Fault {
		if call.Op != "TransactWriteItems" {
			return dynamofake.Fault{}
		}
		return dynamofake.Fault{Kind: kind}
	})
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Millisecond)
	err := c.PutLimits(ctx, ns, limiter.SystemLimitsRef(), limiter.Record{OnUnavailable: limiter.Deny})
	stop()
	want := limiter.ErrUncertain
	if kind == dynamofake.Throttle {
		want = limiter.ErrUnavailable
	}
	if !errors.Is(err, want) {
		t.Errorf("%v: error = %v, want %q", kind, err, want)
	}
	db.SetPlan(nil)
	putPerDay(t, c, limiter.SystemLimitsRef(), 7)
	if records, _ := read(t, c, limiter.SystemLimitsRef()); capacityOf(records[0]) != 7 {
		t.Errorf("%v: the change after it is not there", kind)
	}
}

// TestDeleteEntityOfManyLimits: more limits than a transaction holds, a failure on
// the way, and nothing of the entity left in the end.
func TestDeleteEntityOfManyLimits(t *testing.T) {
	db := dynamofake.New()
	c := newTestCatalog(t, db)
	if _, err := c.PutEntity(t.Context(), time.Unix(0, 0), ns, limiter.Entity{ID: "e"}); err != nil {
		t.Fatalf("PutEntity: %v", err)
	}
	refs := make([]limiter.Ref, 2*maxDeletes+11)
	refs[0] = limiter.EntityRef("e")
	for i := range refs[1:] {
		refs[i+1] = limiter.EntityLimitsRef("e", fmt.Sprint("r", i))
		putPerDay(t, c, refs[i+1], 1)
	}
	putPerDay(t, c, limiter.EntityLimitsRef("e#", "r1"), 9)
	refused := dynamofake.Fault{Kind: dynamofake.Fail, Err: errors.New("broken")}
	db.SetPlan(dynamofake.Script(dynamofake.Step{Op: "TransactWriteItems"}, dynamofake.Step{Op: "TransactWriteItems", Fault: refused}))
	if err := c.DeleteEntity(t.Context(), ns, "e"); err == nil {
		t.Fatal("DeleteEntity that was broken off: no error")
	}
	records, _ := read(t, c, refs...)
	if left := slices.IndexFunc(records, func(r limiter.Record) bool { return !r.Empty() }); left != 0 {
		t.Errorf("after a deletion that was broken off the first record left is %d, want the entity", left)
	}
	db.SetPlan(nil)
	wantCalls(t, db, map[string]int{"BatchGetItem": 2, "Query": 2, "TransactWriteItems": 2}, func() {
		if err := c.DeleteEntity(t.Context(), ns, "e"); err != nil {
			t.Fatalf("DeleteEntity again: %v", err)
		}
	})
	records, _ = read(t, c, slices.Concat(refs, []limiter.Ref{limiter.EntityLimitsRef("e#", "r1")})...)
	for i, r := range records {
		if deleted := i < len(refs); r.Empty() != deleted {
			t.Errorf("record %d: empty = %t, want %t", i, r.Empty(), deleted)
		}
	}
}

// TestReadIsOfOneTime: a change between the reads of a batch is noticed, and the
// batch is read again.
func TestReadIsOfOneTime(t *testing.T) {
	db := dynamofake.New()
	reader := newTestCatalog(t, db)
	writer := openTestCatalog(t, db, reader.table.name)
	refs := []limiter.Ref{limiter.ResourceLimitsRef("a"), limiter.ResourceLimitsRef("b")}
	putPerDay(t, writer, refs[0], 1)
	putPerDay(t, writer, refs[1], 1)
	_, before := read(t, reader, refs...) // and has the generation
	for _, test := range []struct {
		what   string
		change func()
		calls  int
		want   []int64
	}{
		{"nothing", func() {}, 1, []int64{1, 1}},
		{"a record changed that is not read", func() { putPerDay(t, writer, limiter.ResourceLimitsRef("c"), 1) }, 1, []int64{1, 1}},
		{"a record changed", func() { putPerDay(t, writer, refs[1], 2) }, 2, []int64{1, 2}},
		{"a record deleted", func() {
			if err := writer.PutLimits(t.Context(), ns, refs[0], limiter.Record{}); err != nil {
				t.Fatalf("PutLimits: %v", err)
			}
		}, 2, []int64{0, 2}},
	} {
		test.change()
		var records []limiter.Record
		var generation uint64
		writes := db.Count("TransactWriteItems")
		wantCalls(t, db, map[string]int{"BatchGetItem": test.calls}, func() { records, generation = read(t, reader, refs...) })
		if capacityOf(records[0]) != test.want[0] || capacityOf(records[1]) != test.want[1] {
			t.Errorf("%s: capacities %d and %d, want %v", test.what, capacityOf(records[0]), capacityOf(records[1]), test.want)
		}
		if most := (schema.Counters{Changes: uint64(writes)}).Generation(); generation < before || generation > most { // #nosec G115 -- small
			t.Errorf("%s: generation %d, %d before, %d changes", test.what, generation, before, writes)
		}
		before = generation
	}
}

// slowReads is a DynamoDB whose batches take a while to arrive.
type slowReads struct{ awsdb.Client }

// ofChange marks the contexts of changes, whose reads are not slow.
type ofChange struct{}

func (s slowReads) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	if ctx.Value(ofChange{}) == nil {
		if err := awsdb.Pause(ctx, awsdb.Goroutines{}, 3); err != nil {
			return nil, err
		}
	}
	return s.Client.BatchGetItem(ctx, in, opts...)
}

// TestReadsEndWhileRecordsChange: a record that changes faster than it is read is read.
func TestReadsEndWhileRecordsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := dynamofake.New()
		c := newTestCatalog(t, slowReads{db})
		putPerDay(t, c, limiter.ResourceLimitsRef("r"), 1)
		db.SetPlan(func(dynamofake.Call) dynamofake.Fault { return dynamofake.Fault{Latency: time.Millisecond} })
		done := make(chan struct{})
		var g errgroup.Group
		g.Go(func() error {
			for n := int64(1); ; n++ {
				select {
				case <-done:
					return nil
				default:
				}
				set, err := limiter.NewLimits(limiter.PerDay("l", n))
				if err != nil {
					return err
				}
				if err := c.PutLimits(context.WithValue(t.Context(), ofChange{}, true), ns, limiter.ResourceLimitsRef("r"), limiter.Record{Limits: set}); err != nil {
					return err
				}
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		last := uint64(0)
		for range 5 {
			generation, err := c.Read(ctx, ns, []limiter.Ref{limiter.ResourceLimitsRef("r")}, make([]limiter.Record, 1))
			if err != nil || generation <= last {
				t.Errorf("got generation %d after %d, %v", generation, last, err)
			}
			last = generation
		}
		close(done)
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// TestCorruptRecordIsNotOverlooked: in Read, which names it, and in a change, which
// does not overwrite it.
func TestCorruptRecordIsNotOverlooked(t *testing.T) {
	db := dynamofake.New()
	c := newTestCatalog(t, db)
	if _, err := c.PutEntity(t.Context(), time.Unix(0, 0), ns, limiter.Entity{ID: "e"}); err != nil {
		t.Fatalf("PutEntity: %v", err)
	}
	sp, err := c.use(t.Context(), ns)
	if err != nil {
		t.Fatalf("use: %v", err)
	}
	broken := schema.EntityItem(sp.id, limiter.Record{Entity: &limiter.Entity{ID: "e", Version: 1}})
	broken[schema.AttrEntityVersion] = avS("one")
	if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &c.table.name, Item: broken}); err != nil {
		t.Fatalf("PutItem: %v", err)
	}
	_, errRead := c.Read(t.Context(), ns, []limiter.Ref{limiter.EntityRef("e")}, make([]limiter.Record, 1))
	_, errPut := c.PutEntity(t.Context(), time.Unix(0, 0), ns, limiter.Entity{ID: "e", Version: 1})
	_, errChild := c.PutEntity(t.Context(), time.Unix(0, 0), ns, limiter.Entity{ID: "child", Parent: "e"})
	for what, err := range map[string]error{"Read": errRead, "PutEntity": errPut, "PutEntity of a child": errChild} {
		if corrupt, ok := errors.AsType[*schema.CorruptError](err); !ok || corrupt.Attribute != schema.AttrEntityVersion || !strings.Contains(corrupt.Key, "ENTITY#e") {
			t.Errorf("%s: error = %v, want one that names the item and its version", what, err)
		}
	}
	out, err := db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &c.table.name, Key: schema.EntityKey(sp.id, "e").Attributes()})
	if err != nil {
		t.Fatalf("GetItem: %v", err)
	}
	if diff := cmp.Diff(attributeText(broken), attributeText(out.Item)); diff != "" {
		t.Errorf("the item was overwritten (-was +is):\n%s", diff)
	}
}
