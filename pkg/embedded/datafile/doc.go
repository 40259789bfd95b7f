// Package datafile keeps what an embedded store must not lose: one file in a
// directory of its own, changed in transactions that are on disk when they return.
//
// It knows tables of keys and values, and nothing of what they mean. What it
// returns is what was written: a file that was cut, overwritten or put back in part
// is refused with an error that says so, never read as if something had not been
// there. For that every value carries a checksum, and the file a digest of all.
//
// # The directory
//
//	ratelimit.db     the tables, a bbolt database
//	ratelimit.pid    the process that has the directory open, for the message to the next
//
// One process at a time has it open; the second is told the first one's id.
//
// # After a power cut
//
// A transaction is there as a whole or not at all: bbolt writes its pages beside
// the old ones, and turns to them by one page that is written last.
package datafile
