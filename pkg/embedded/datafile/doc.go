// Package datafile stores the durable state of an embedded store: one file in its own directory,
// changed in transactions that are on disk when they return.
//
// It has tables of keys and values, and does not interpret them. Each read returns the bytes that
// were written. A file that was cut, overwritten or reverted in part is refused with an error. It
// is never read as if records had not existed.
//
// # The directory
//
//	ratelimit.db                    the tables, a bbolt database
//	ratelimit.db.new                a file under construction; a leftover is removed
//	ratelimit.db.20060102T1504…Z    the file before a restore
//	ratelimit.pid                   the process that has the directory open
//	ratelimit.made                  marks a directory that has had a ratelimit.db, and its last commit
//
// One process at a time has it open. A second one gets an error with the id of the first. A lock on
// ratelimit.db decides, which ends with the process in any case. A lock on the directory tells
// Restore of a process whose ratelimit.db was removed. ratelimit.pid is for the message only, and a
// stale one does not matter.
//
// Only a directory that never had ratelimit.db gets a new one, unless Options.New is set.
// ratelimit.made is created when the first file is in its place. The place never has half a file:
// new, compacted and restored files are written beside it, synced and renamed. An empty file is
// damage, not a new one.
//
// # After a power cut
//
// A transaction is in the file as a whole or not at all, and it is there when Update has returned
// nil. bbolt writes new pages beside the old ones, and switches to them by one meta page, written
// last.
//
// # Checks
//
// Every value has a CRC-32C over table, key and value. Every table has a digest, written with each
// transaction: the number of its records and the sum of their SHA-256, cut to 128 bits. The digests
// have the number of the transaction. Each finished transaction is marked in ratelimit.made. So
// neither a page nor the last transaction can be reverted unnoticed.
//
// Open reads the whole file through bbolt, and checks all of this. bbolt checks the order of the
// trees, and that each page has one use. A page that cannot be read, or leads to none, ends in
// ErrCorrupt. bbolt would follow a circle of pages until the memory is used up. So the kinds and the
// pointers of the pages are read first, see pointers. No other part of a page is. Get and Each check
// each value again. A million records of 120 bytes (151 MiB) take 0.8 s if the kernel has them in
// memory, on an AMD EPYC with SHA instructions. Otherwise the disk is the limit.
//
// Three kinds of damage are not detected by Open:
//
//   - The file and ratelimit.made, both reverted to an older state.
//   - The loss of the last transaction's meta page together with its mark. The mark reaches the
//     disk some seconds after the transaction, or with Close. A power cut before that loses it.
//   - A key in a branch page, changed to another one that still separates the records below it. The
//     records are all there. A later change of these records may end in ErrCorrupt, or the next
//     Open.
//
// One kind can end the process in place of an error: a wrong length of a list of 65,535 free pages
// or more. bbolt allocates as much memory as it says. No record is read as missing then.
//
// # When the disk fails
//
// Without space a change fails with ErrFull, is not made, and may be tried again. After any other
// failed write or sync the state of the disk is unknown, because the kernel treats the pages as
// written from then on. Then everything fails with ErrUncertain until the file is opened again. The
// new open shows the pages that the kernel treats as written; after a failed sync, Compact rewrites
// all of them.
//
// It needs a local file system with working fsync and flock, so not NFS.
package datafile
