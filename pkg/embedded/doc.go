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
// Memory decides, and the file bounds what it may give: block.go has the rule and why it
// is exact. One goroutine writes, in groups. Store.Backup copies the file and Store.Restore
// puts a copy back while the store serves; the sweeper has the file compacted.
package embedded
