package limiter

import (
	"context"
	"time"
)

// Store keeps buckets, entities and limits. It is the one contract that every
// store of this project shares, and this comment is its law; storetest.Run
// checks it, against every store.
//
// # Safety
//
// Every method is safe for concurrent use. After Close every method returns
// [ErrClosed]. A context that is done before anything was applied yields an error
// that wraps the context's and [ErrUnavailable]. Take may decide all the same when
// the context's deadline has passed, see Op.Late. Nothing that stands in a name or
// in an amount makes a method panic; names are any bytes of any length, compared
// byte by byte, and no two names share a record. No two names share a bucket while the store
// has room for both; without room they may, so that none gets more than it would alone.
//
// # Never over-admit
//
// For a bucket of capacity B and refill rate r, the tokens admitted in any
// interval (s,t], less what was refunded, are at most B + r·(t−s). That holds for
// any order in which concurrent calls are applied, with any now. Across changes
// of a limit B is the greatest capacity that was in force in the interval, and each
// rate counts while it was in force. A clock that goes backwards mints nothing.
//
// Tokens of late decisions (Op.Late) stand outside of the bound until they are taken. A
// store documents how many there may be at a time.
//
// # Errors
//
// [ErrInvalid]: can never succeed. [ErrUnavailable]: was not applied.
// [ErrUncertain]: may have been applied. [ErrClosed]. [ErrConflict] from the
// catalog, and [ErrState]. Every error wraps one of them.
type Store interface {
	// Take decides ops all or nothing: when every spend of every op finds what it
	// needs, all are taken and Take returns true; otherwise none is, in no bucket,
	// and it returns false. Charges and refunds are applied either way. See [Op] for
	// the order within an op, and for what Take fills in. No two ops have the same
	// Bucket, and ops is not empty. On an error the fields that Take fills in mean nothing.
	//
	// Where Take returns an error nothing stays taken: tokens that were taken, or are
	// taken later by a write that is under way, are given back, unless Op.KeepTaken says that the caller is admitted
	// all the same. Where the store cannot do that, or cannot know whether it has to, it
	// counts it. Charges and refunds are applied at most once: none of them, now or later,
	// on ErrUnavailable, and perhaps some on ErrUncertain.
	//
	// now is the caller's clock. A store may decide at a later time of its own, and
	// must decide at no earlier one than it has already refilled the bucket to.
	Take(ctx context.Context, now time.Time, ops []Op) (admitted bool, err error)

	Catalog
	Settlements

	// Capabilities says what the store can do beyond this contract; it never changes.
	Capabilities() BackendCapabilities

	// Close ends the store's work and frees what it holds. Calls in flight finish
	// or return ErrClosed. A second Close returns nil.
	Close(ctx context.Context) error
}

// BackendCapabilities says what a store can do beyond the contract.
type BackendCapabilities struct {
	// Local says that the store is memory of this process: its calls do no I/O and
	// never wait, so that caching its records and its denials would only cost.
	Local bool

	AuditLogging             bool // keeps an audit event for every change
	UsageSnapshots           bool // keeps usage by hour, day and month
	InfrastructureManagement bool // can create and delete the infrastructure it needs
	ChangeStreams            bool // can notify others of changes as they happen
	BatchOperations          bool // reads many records in one round trip
}
