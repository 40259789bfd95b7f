// Package dynamofake is a DynamoDB in memory, for tests that need a million calls,
// or calls that fail in a way of their choosing.
//
// A [DB] has the methods of the SDK's client that the store of a fleet calls. It
// parses and evaluates expressions by DynamoDB's grammar. It returns the SDK's own
// errors in the SDK's own wrapping. It counts calls and write capacity. A [Plan]
// decides for each call which fault it has. A differential test compares DB with
// DynamoDB Local, so a request that succeeds here succeeds there.
//
// Bare attribute names and paths into documents are left out on purpose: they end in
// [ErrUnsupported]. The package has no streams, no local secondary indexes and no
// backups.
package dynamofake
