package limiter

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
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

// BucketKey identifies a bucket. Two keys are the same bucket only if all fields are equal.
type BucketKey struct {
	Namespace string
	Entity    string // any bytes
	Resource  string // any bytes
	Variant   uint64 // 0 for the ordinary bucket; otherwise own limits, or a label, have buckets apart
}

// Op is one bucket's part of a decision.
//
// # Limits of the bucket
//
// A bucket remembers the limits it is under, and their version: (Generation,
// Limits.Hash()), ordered by generation, then by hash. A missing bucket is
// created full, under the op's limits. When the hashes differ and the op's version
// is greater, the bucket is brought under the op's limits before anything else:
// each limit it holds is refilled under its old numbers, and then its use is carried
// over to the new ones (tokenbucket.Bucket.Reparameterize). A capacity raised by d
// raises the balance by d, a lowered one cuts it. A limit that is gone stays dormant
// under its old numbers while it has use, so that one that comes back has its use of
// before. A limit that has no use is the same as one that the bucket never held, and
// starts full. When the op's version is smaller, the bucket decides under the newer limits
// that it already has. When the hashes are equal the generation is raised to the op's.
//
// Refill makes up for use that a full balance carries. When a store takes from such a
// balance, it may drop the part of a millitoken that was made up for.
//
// A bucket may forget dormant limits beyond MaxDormant, those first that have the
// least time left until they are without use. Until the last of all that it forgot
// would be, a limit that the bucket does not hold starts empty: with no token, and the
// greatest use that any of them had when it was forgotten, if that is more than its
// capacity. So no change of limits returns used tokens, however many there are. A debt
// that is forgotten is remitted: charges stand outside of the bound.
//
// # Order within an op
//
// For each spend: refill to now; net Refund and Charge; what the net gives is
// added, up to the capacity; then a Take above 0 finds what it needs if the balance
// is at least Take, and a Look if it is at least one whole token (a spend with
// neither always does, also in debt); then what the net costs is subtracted, down
// to the limit's debt floor and no further, the remainder of the refill kept (a
// balance that is below the floor already stays).
//
// # Strings
//
// Strings of an op may share memory with a whole message: a store clones what it keeps.
type Op struct {
	Bucket     BucketKey
	Limits     *Limits // not empty
	Generation uint64
	Spends     []Spend // not empty; every Limit once

	// Shard is where the op goes in a store that keeps a bucket in several parts: 0
	// leaves it to the store, which sets it to where the op went, or to 0 where it went
	// to several. An op that books more or gives back of what an earlier one took has
	// that one's Shard.
	Shard int

	// KeepTaken says that the caller is admitted where Take returns ErrUnavailable or
	// ErrUncertain. The tokens of the op then stay taken. All ops of a call have the same.
	KeepTaken bool

	// Late is set by Store.Take, and false before the call. It reports that the store's
	// answer did not come before the deadline of the call's context, and that the op was
	// decided by the state that this process last saw. Each spend then holds an estimate.
	//
	// The attempt to reach the store goes on after the call. Tokens of an admitted call are
	// taken later, always and in full, below the debt floor if need be. Of a denied call no
	// tokens stay taken. Charges and refunds are applied later, at most once. All of that is
	// lost only with the process.
	//
	// A late decision is for a store that is slow. Where the store cannot be reached Take
	// returns ErrUnavailable or ErrUncertain. A context without a deadline, a canceled one
	// and a local store never lead to a late decision.
	Late bool

	// Lease is what the op's rules let the store do with token leases on the bucket. It
	// means something only of an op that takes or looks: what is charged or given back
	// later does not know the rules that it was taken by.
	Lease LeasePolicy
}

// Spend is what an op does with one limit of its bucket. Amounts are millitokens,
// 0 to tokenbucket.MaxAmount.
type Spend struct {
	Limit  string
	Take   int64 // taken if there
	Look   bool  // asks for one whole token, takes none
	Charge int64 // booked always, down to the limit's debt floor
	Refund int64 // given back always, up to the capacity

	// Set by Store.Take:

	// Held is false when the bucket is under newer limits that have no such limit,
	// or have it unlimited: then the spend passes, and the rest is unset.
	Held bool
	// Exceeded reports that this spend did not find what it needs.
	Exceeded bool
	// Limits and Index name the limit that the bucket is under.
	Limits *Limits
	Index  int
	// Bucket is the state after the decision. Where the decision was a denial it is
	// refilled to now, and charges and refunds are in it, takes are not.
	Bucket tokenbucket.Bucket
}

// Settlements is the part of a [Store] that has every reservation settled once,
// whoever tries, and keeps what its processes share to know a reservation again.
type Settlements interface {
	// Settle reports whether m.Owner is the one that settles the reservation: the
	// first whose mark was applied, and the same again when it repeats the call, as
	// it must when it does not know how an earlier call ended. A mark is kept until
	// m.Expires has passed on every clock of the fleet, which may differ by an hour
	// and be set back by as much; until then nobody else wins. At m.Expires and after
	// it nobody wins, by now or by a later time that the store has seen. It fails with
	// [ErrInvalid] for what [CheckMark] refuses. On an error nobody may go on to book.
	Settle(ctx context.Context, now time.Time, m Mark) (won bool, err error)

	// Secret returns the secret of a name, which is the same for every process that
	// shares the store, for as long as the store keeps what is in it. Where there is
	// none it stores candidate; of processes that do so at the same time all get the
	// same. It fails with [ErrInvalid] for what [CheckSecret] refuses. The secret must
	// not be changed.
	Secret(ctx context.Context, name string, candidate []byte) ([]byte, error)
}

// Limits of what a store keeps for settlements, in bytes.
const (
	MaxMarkLength       = 64 // of a Mark's ID and Owner
	MaxSecretNameLength = 64
	MinSecretLength     = 16
	MaxSecretLength     = 256
)

// Mark says who settles a reservation. ID and Owner are any bytes.
type Mark struct {
	Namespace string
	ID        string    // of the reservation, 1 to MaxMarkLength bytes
	Owner     string    // of this settlement, random, 1 to MaxMarkLength bytes
	Expires   time.Time // when the reservation can be settled no more; the same for every Mark of an ID
}

// CheckMark refuses, with ErrInvalid, an ID or Owner that is empty or too long.
func CheckMark(m Mark) error {
	for _, part := range [...]struct{ what, value string }{{"id of a reservation", m.ID}, {"owner of a settlement", m.Owner}} {
		if n := len(part.value); n == 0 || n > MaxMarkLength {
			return fmt.Errorf("%w: the %s has %d bytes; it must have 1 to %d", ErrInvalid, part.what, n, MaxMarkLength)
		}
	}
	return nil
}

// CheckSecret refuses, with ErrInvalid, a name that is not 1 to MaxSecretNameLength
// lower-case letters, digits and hyphens, and a secret of fewer than MinSecretLength
// or more than MaxSecretLength bytes.
func CheckSecret(name string, secret []byte) error {
	const allowed = "abcdefghijklmnopqrstuvwxyz0123456789-"
	if name == "" || len(name) > MaxSecretNameLength || strings.Trim(name, allowed) != "" {
		return fmt.Errorf("%w: the name of a secret is %.100q; it must be 1 to %d lower-case letters, digits and hyphens", ErrInvalid, name, MaxSecretNameLength)
	}
	if n := len(secret); n < MinSecretLength || n > MaxSecretLength {
		return fmt.Errorf("%w: secret %s has %d bytes; it must have %d to %d", ErrInvalid, name, n, MinSecretLength, MaxSecretLength)
	}
	return nil
}

// Catalog is the part of a [Store] that keeps entities and limits. In a namespace that is not
// active its changes fail with [ErrState].
type Catalog interface {
	// Read reads the records that refs name into records, which has the same
	// length: one batch, consistent with itself. What does not exist is the zero
	// Record; a record that could not be read is an error, never a zero Record.
	// The generation is of no later time than the records, so that limits that
	// were replaced are never taken for new ones. Records are shared and must not
	// be changed.
	Read(ctx context.Context, namespace string, refs []Ref, records []Record) (generation uint64, err error)

	// PutEntity creates or replaces an entity. e.Version must be what was read, 0
	// for one that does not exist, else ErrConflict. It refuses with ErrInvalid an
	// empty ID, and what CheckHierarchy refuses of the entity's own chain upwards. It returns the entity
	// as stored: with its new Version, and CreatedAt (now when it was created).
	PutEntity(ctx context.Context, now time.Time, namespace string, e Entity) (Entity, error)
	// DeleteEntity removes an entity and its limits; its buckets stay. One that
	// does not exist is not an error. Children keep their Parent, which then is an
	// entity that was never created.
	DeleteEntity(ctx context.Context, namespace, id string) error

	// PutLimits sets what ref holds: Record.Limits, and for SystemRef also
	// Record.OnUnavailable. An empty record deletes it. ref must not be an EntityRef. No
	// method but Edit changes Record.Disabled, and none but Edit and Purge Record.State.
	PutLimits(ctx context.Context, namespace string, ref Ref, r Record) error

	// RaiseGeneration raises the generation of every namespace that this store has
	// read, and of each other one before its first Read: the configuration file
	// changed, and limits resolved from now on are newer than all before. The
	// changes of PutEntity, DeleteEntity and PutLimits raise it by themselves.
	RaiseGeneration(ctx context.Context) error

	// Subscribe has fn called after every change of any process, within 5 seconds.
	// It must be called before the first Read, at most once, and fn must not
	// block. Not needed where Capabilities().Local.
	Subscribe(fn func(Change))
}

// Change says that records of a namespace changed.
type Change struct {
	Namespace  string // "" = all
	Generation uint64 // of the change: what was read at a smaller one may be old
	Refs       []Ref  // what changed; nil = anything
}

// RefKind is the kind of a catalog record.
type RefKind uint8

// The kinds of records.
const (
	RefEntity         RefKind = iota // the entity itself
	RefEntityLimits                  // its limits for a resource, or for DefaultResource
	RefResourceLimits                // the limits of a resource
	RefSystemLimits                  // the limits of everything else, and the policy
)

// Ref names a catalog record.
type Ref struct {
	Kind     RefKind
	Entity   string // for RefEntity and RefEntityLimits
	Resource string // for RefEntityLimits and RefResourceLimits
}

// EntityRef names an entity.
func EntityRef(id string) Ref { return Ref{Kind: RefEntity, Entity: id} }

// EntityLimitsRef names an entity's limits for a resource.
func EntityLimitsRef(id, resource string) Ref {
	return Ref{Kind: RefEntityLimits, Entity: id, Resource: resource}
}

// ResourceLimitsRef names a resource's limits.
func ResourceLimitsRef(resource string) Ref { return Ref{Kind: RefResourceLimits, Resource: resource} }

// SystemLimitsRef names the limits of everything that has none of its own.
func SystemLimitsRef() Ref { return Ref{Kind: RefSystemLimits} }

// Record is what a Ref holds; the zero Record says that there is none.
type Record struct {
	Entity        *Entity  // for RefEntity
	Limits        *Limits  // for the others
	OnUnavailable Policy   // for RefSystemLimits; Unset = not stored
	Budgets       *Budgets // of the Limits; nil = none
	Disabled      bool     // for RefEntity, RefResourceLimits and RefSystemLimits, see [Switch]

	State NamespaceState // of the namespace, for RefSystemLimits
	Since time.Time      // of State, UTC, whole milliseconds; zero for NamespaceActive
}

// Empty reports whether nothing is stored.
func (r Record) Empty() bool {
	return !r.Stored() && !r.Disabled && r.State == NamespaceActive
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
