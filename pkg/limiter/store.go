package limiter

import (
	"context"
	"time"
)

// Store keeps buckets, entities and limits. It is the one contract that every store of this project
// shares, and this comment is its law; storetest.Run checks it, against every store.
//
// # Safety
//
// Every method is safe for concurrent use. After Close every method returns [ErrClosed]. If a
// context is done before anything was applied, the error wraps the context's and [ErrUnavailable].
// Take may still decide after the context's deadline, see Op.Late. No name and no amount makes a
// method panic. Names are any bytes of any length, compared byte by byte, and no two names share a
// record. No two names share a bucket while the store has room for both. Without room they may, so
// that neither gets more than it would alone.
//
// # Never over-admit
//
// For a bucket of capacity B and refill rate r, consider any interval (s,t]. The tokens admitted in
// it, less refunds, are at most B + r·(t−s). This holds for any order in which concurrent calls are
// applied, with any now. If a limit changes, B is the greatest capacity that was in force in the
// interval. Each rate counts while it was in force. A clock that goes backwards creates no tokens.
//
// Tokens of late decisions (Op.Late) are outside of the bound until they are taken. A store
// documents the most that there may be at a time.
//
// # Errors
//
// [ErrInvalid]: can never succeed. [ErrUnavailable]: was not applied.
// [ErrUncertain]: may have been applied. [ErrClosed]. [ErrConflict] from the
// catalog, and [ErrState]. Every error wraps one of them.
type Store interface {
	// Take decides ops all or nothing. When the balances meet the need of every spend of every op,
	// all are taken and Take returns true. Otherwise none is, in no bucket, and it returns false.
	// Charges and refunds are applied either way. See [Op] for the order within an op, and for the
	// fields that Take fills in. No two ops have the same Bucket, and ops is not empty. On an error
	// the fields that Take fills in are undefined.
	//
	// If Take returns an error nothing stays taken: the store returns tokens that were taken, or
	// are taken later by an in-flight write. The exception is Op.KeepTaken, which says that the
	// caller is admitted all the same. If the store cannot return them, or cannot know whether it
	// must, it counts that. Charges and refunds are applied at most once. After ErrUnavailable none
	// of them is applied, now or later, and after ErrUncertain perhaps some.
	//
	// now is the caller's clock. A store may decide at a later time of its own. It must not decide
	// at an earlier one than that of the bucket's last refill.
	Take(ctx context.Context, now time.Time, ops []Op) (admitted bool, err error)

	Catalog
	Settlements

	// Capabilities returns the abilities of the store beyond this contract; they never change.
	Capabilities() BackendCapabilities

	// Close ends the store's work and frees its resources. Calls under way finish or return
	// ErrClosed. A second Close returns nil.
	Close(ctx context.Context) error
}

// BackendCapabilities lists the abilities of a store beyond the contract.
type BackendCapabilities struct {
	// Local: the store is memory of this process. Its calls do no I/O and never wait, so a cache of
	// its records and denials would only cost.
	Local bool

	AuditLogging             bool // keeps an audit event for every change
	UsageSnapshots           bool // keeps usage by hour, day and month
	InfrastructureManagement bool // can create and delete the infrastructure it needs
	ChangeStreams            bool // can notify others of changes as they happen
	BatchOperations          bool // reads many records in one round trip
}
