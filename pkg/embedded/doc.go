// Package embedded is the store for one node. It keeps buckets, entities, limits and the marks of
// settlements in the memory of this process. With [Open] it also keeps them in a file, which
// outlives the process.
//
// # Structure
//
// Buckets are in a few thousand shards, each a map under its own mutex. A decision locks the shards
// of its buckets in ascending order. So it is atomic over all of them, and no deadlock can form. A
// lock is held for the arithmetic only. Locks on shards instead of buckets save a second lock, and
// make it safe to drop a bucket. With so many shards two hot buckets rarely share one.
//
// A full bucket and no bucket are the same thing. Buckets that are full again are dropped, a few
// shards at a time. This happens a minute late, for callers whose clock is behind. A bucket that a
// decision creates and leaves full is dropped at once. No balance is ever evicted for lack of room.
// At Config.MaxBuckets, keys without a bucket share overflow buckets, see [Overflow].
//
// A mark is dropped when it has expired by the latest time that Settle was called with. A
// reservation that has expired by then cannot be settled. So a dropped mark is never missed, even
// if clocks of callers differ. No mark is dropped for lack of room either: at Config.MaxMarks a new
// one is refused with limiter.ErrUnavailable.
//
// # With a file
//
// Memory decides, and the file bounds the tokens that memory may give. For each bucket the file has
// its exact state at some time, and the block: the amount that may be taken since. A take beyond
// the block waits until the file has a newer state, and until then nothing is changed. After a
// crash a bucket is refilled first, and then the block is subtracted; block.go proves that this is
// exact. So a crash costs a bucket at most its block, and a clean shutdown nothing. A block is as
// much as is taken in a second, and small against the capacity.
//
// One goroutine writes, in groups. Changes that are requested while one transaction is under way go
// into the next. A batch that a caller waits for is written at once. A batch that only renews
// blocks before they are used up waits some milliseconds for more. Denials and peeks write nothing,
// nor does an idle store.
//
// Usage is counted in the buckets' records. It moves to rows of hours, days and months in the
// transaction that writes the record without it. Entities and limits change in the file first, with
// the generation and an audit event in the same transaction, and then in memory. The sweeper drops
// old events and rows, a part at a time.
//
// A commit that fails fails the requests that wait for it. Takes within blocks continue. After a
// commit of unknown outcome (limiter.ErrUncertain) both states bound the takes, and the file
// accepts no writes until it is opened again.
//
// Store.Backup copies the file and Store.Restore restores a copy while the store serves. The
// sweeper has the file compacted.
//
// # Parts
//
// A Store has parts, each of which implements a part of the contract.
//
// A file uses only files of the lines above it, and of its own line:
//
//	record_reader, record_errors, record_identity          parts of records, as bytes
//	record_limits, record_budgets, record, record_event    entities, limits and audit events, as bytes
//	changes, errors, page, window, consumption             used by all parts
//	contents, block, bucket, account, lower, bucketrecord  one bucket: its limits and balances; its block
//	overflow, config, table, shared, openbucket, load      all buckets in memory, overflow buckets
//	recordset, edit, editrecord, budgetset                 entities and limits, and changes of them
//	usagerow, moved, batch, disk, commit, finish           the writer of the file, and its rows of usage
//	take, decide                                           decisions: Take
//	catalog, directory, namespaces, editor                 entities, limits and namespaces: read, listed, changed
//	settlements, marks, secrets                            settlements and secrets
//	usagelist, budgets, auditlog                           usage, budgets and audit
//	balances, adjust                                       balances, listed and adjusted
//	sweep, purge, compact, restore                         deletion, replacement and compaction
//	store, open, backup, stats                             the store
//
// # Records
//
// The record files have the layout of the records of a data file: entities and limits, audit events,
// and the common parts of all records. They depend on no other file, and convert values to bytes
// and back.
//
// A number is a varint, and a text has its length before it. A record begins with its version. For
// other bytes a parser returns errFormat, and it never reads beyond the record. Names are any bytes
// of any length, so a key is at most longestKey long, see keyOf.
package embedded
