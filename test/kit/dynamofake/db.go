package dynamofake

import (
	"context"
	"maps"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// DB is a DynamoDB of one region and account. The zero value is ready to use and
// has no tables. It is safe for concurrent use; writes are applied one by one.
type DB struct {
	mu         sync.Mutex
	tables     map[string]*table
	tokens     map[string]tokenUse // of transactions, by ClientRequestToken
	plan       Plan
	calls      map[string]int
	faults     map[Kind]int
	writeUnits int64
}

// New returns a DB without tables.
func New() *DB { return &DB{} }

// Count returns how many calls of an operation, such as "UpdateItem", arrived,
// those that failed included.
func (db *DB) Count(op string) int {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.calls[op]
}

// Counts returns how many calls of each operation arrived.
func (db *DB) Counts() map[string]int {
	db.mu.Lock()
	defer db.mu.Unlock()
	return maps.Clone(db.calls)
}

// Faults returns how many faults of each kind were injected.
func (db *DB) Faults() map[Kind]int {
	db.mu.Lock()
	defer db.mu.Unlock()
	return maps.Clone(db.faults)
}

// WriteUnits returns the write capacity units consumed so far: as DynamoDB bills
// them, so with those of failed conditions, which neither DynamoDB Local nor the
// SDK reports.
func (db *DB) WriteUnits() int64 {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.writeUnits
}

// SetPlan sets the plan of faults for the calls from now on; nil = no faults.
func (db *DB) SetPlan(p Plan) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.plan = p
}

// request is a call that was parsed and shares no memory with its input. It may be
// applied more than once, and is with db.mu locked.
type request[O any] struct {
	apply func() (*O, error)
	// half applies the first half of a batch of two or more; nil for others.
	half func() (*O, error)
}

// do serves a call, with the fault that the plan chose for it.
func do[O any](ctx context.Context, db *DB, call Call, prepare func() (request[O], error)) (*O, error) {
	if ctx.Err() != nil {
		return nil, canceled(ctx, call.Op)
	}
	r, invalidRequest := prepare()
	f := db.arrive(call, r.half != nil)
	if err := f.Before(call.Op); err != nil {
		return nil, err
	}
	run := func() (*O, error) {
		db.mu.Lock()
		defer db.mu.Unlock()
		if invalidRequest != nil {
			return nil, invalidRequest
		}
		if f.Kind == Partial {
			return r.half()
		}
		return r.apply()
	}
	// The reply to a request that is applied late has no reader.
	if f.Kind == HoldRequest && !f.Gate.Wait(ctx, func() { _, _ = run() }) {
		return nil, canceled(ctx, call.Op)
	}
	out, err := run()
	if f.Kind == Duplicate {
		f.Gate.Later(func() { _, _ = run() })
	}
	if lostErr := f.after(ctx, call.Op); lostErr != nil {
		return nil, lostErr
	}
	if err != nil {
		return nil, answered(call.Op, err)
	}
	return out, nil
}

// arrive counts a call and asks the plan.
func (db *DB) arrive(call Call, batch bool) Fault {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.calls == nil {
		db.calls, db.faults = map[string]int{}, map[Kind]int{}
	}
	db.calls[call.Op]++
	call.N = db.calls[call.Op]
	if db.plan == nil {
		return Fault{}
	}
	f := db.plan(call)
	if f.Kind == Partial && !batch {
		f.Kind = None
	}
	if f.Kind != None {
		db.faults[f.Kind]++
	}
	return f
}

// tokenUse is a transaction that was committed under a ClientRequestToken.
type tokenUse struct {
	body string
	out  *dynamodb.TransactWriteItemsOutput
}
