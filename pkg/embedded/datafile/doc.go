// Package datafile keeps what an embedded store must not lose: one file in a
// directory of its own, changed in transactions that are on disk when they return.
//
// It knows tables of keys and values, and nothing of what they mean. What it
// returns is what was written: a file that was cut, overwritten or put back in part
// is refused with an error that says so, never read as if something had not been
// there.
//
// # The directory
//
//	ratelimit.db                    the tables, a bbolt database
//	ratelimit.db.new                a file in the making; a leftover is removed
//	ratelimit.db.20060102T1504…Z    the file before a restore
//	ratelimit.pid                   the process that has the directory open
//	ratelimit.made                  says that there was a ratelimit.db
//
// One process at a time has it open; the second is told the first one's id. A lock
// on ratelimit.db decides, which ends with the process however it ends;
// ratelimit.pid is for the message only, and a stale one does not matter.
//
// Only a directory that never had ratelimit.db gets a new one, unless Options.New asks for
// it: ratelimit.made is made when the first one is in its place. The place never holds
// half a file: new, compacted and restored files are made beside it, brought to disk
// and moved over. An empty file is damage, not a new one.
//
// # After a power cut
//
// A transaction is there as a whole or not at all, and it is there when Update
// returned nil: bbolt writes its pages beside the old ones, and turns to them by one
// meta page that is written last.
//
// # What is checked
//
// Every value carries a CRC-32C over table, key and value. Every table has a digest,
// written with each transaction: the number of its records and the sum of their
// SHA-256, cut to 128 bits. The digests carry the number of the transaction, and each
// finished one is marked outside of bbolt's pages, so that neither a page nor the
// last transaction goes back unnoticed.
//
// Open reads the whole file and compares all that, and that the trees are in order
// and each page has one use, before bbolt follows any of its pointers. A million
// records of 120 bytes (151 MiB) take 0.5 s when the kernel has them in memory, on an
// AMD EPYC with SHA instructions; else the disk sets the pace. Get and Each check each
// value again.
//
// What cannot be told is a file that was put back to an older state as a whole, and a
// last transaction whose meta page was lost together with its mark.
//
// # When the disk fails
//
// Without space a change fails with ErrFull, is not made, and may be tried again.
// After any other failed write or sync nobody knows what is on disk, since the kernel
// takes the pages for written from then on: everything fails with ErrUncertain until
// the file is opened again. That shows what the kernel took for written: after a
// failed sync, Compact writes all of it anew.
//
// It needs a file system that syncs when told to, and flock: a local one, not NFS.
package datafile
