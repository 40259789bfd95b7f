// Package embedded is the store for one node: buckets, entities, limits and the
// marks of settlements in this process's memory, and with [Open] in a file too, so that
// they outlive the process.
//
// # Structure
//
// Buckets live in a few thousand shards, each a map under a mutex of its own; a
// decision locks the shards of its buckets, in ascending order, so that it is
// atomic over all of them and no cycle of locks can form. A lock is held for the
// arithmetic only. Locking shards instead of single buckets saves a second lock
// and makes dropping a bucket safe without a protocol; with so many shards two
// hot buckets hardly ever share one.
//
// A full bucket and no bucket are the same thing: buckets that are full again
// are dropped, a few shards at a time and a minute late, for callers whose clock
// is behind, and a bucket that a decision creates and leaves full is not kept. No
// balance is ever evicted for want of room; at Config.MaxBuckets a new bucket is refused
// with limiter.ErrUnavailable, and the caller's policy decides.
//
// Marks are kept until they have expired by the latest time that Settle was called
// with, and nobody settles what has expired by then: so a mark that is gone is never
// missed, however callers' clocks run. No mark is dropped for want of room either: at
// Config.MaxMarks a new one is refused with limiter.ErrUnavailable.
//
// # With a file
//
// Memory decides, and the file bounds what it may give. Of each bucket the file has its
// exact state at some time, and the size of the block that may be taken since; what the block
// does not cover waits until the file has a newer state, with nothing changed. After a
// crash a bucket is refilled first, and then the block is subtracted: block.go has why
// that is exact. So a crash costs a bucket at most its block, and a stop in order nothing.
// A block is as much as is taken in a second, and small against the capacity.
//
// One goroutine writes, in groups: whatever is asked for while one transaction is under
// way goes into the next. A batch that somebody waits for is written at once; one that
// only renews blocks before they are used up waits some milliseconds for more. Denials
// and looks write nothing, nor does a store that nobody uses.
//
// Usage is counted in the buckets' records, and moves to rows of hours, days and months
// in the transaction that writes the record without it. Entities and limits change in the
// file first, with the generation and an audit event in the same transaction, and then in
// memory. Events and rows that are too old are dropped by the sweeper, a part at a time.
//
// A commit that fails fails those who wait for it, and what blocks cover goes on. When
// nobody knows how it ended (limiter.ErrUncertain), both states bound what is taken, and
// the file takes nothing until it is opened again.
//
// Store.Backup copies the file and Store.Restore puts a copy back while the store serves;
// the sweeper has the file compacted.
//
// # Parts
//
// A Store is made of parts, each of which implements a part of the contract. A file uses
// only files of the lines above it and of its own line, never in a circle:
//
//	internal/record                         records as bytes, keys
//	config, errors, page, changes           used by all parts
//	contents, block, bucket, account        one bucket: its limits and balances; its block
//	table, shared, open, load               all buckets in memory, overflow buckets
//	recordset, edit, editrecord             entities and limits, and changes of them
//	batch, disk, commit, finish             the writer of the file
//	take, decide                            decisions: Take
//	catalog, directory, namespaces, editor  entities, limits and namespaces: read, listed, changed
//	settlements, marks, secrets             settlements and secrets
//	usagelist, budgets, auditlog            usage, budgets and audit, listed and told
//	balances, adjust                        balances, listed and adjusted
//	sweep, purge, compact, restore          what drops, replaces and shrinks
//	store, recover, backup, stats           the store
package embedded
