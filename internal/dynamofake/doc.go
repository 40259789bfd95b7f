// Package dynamofake is a DynamoDB in memory, for tests that need a million calls,
// or calls that fail in a way of their choosing.
//
// A [DB] has the methods of the SDK's client that the store of a fleet calls. It
// parses and evaluates expressions by DynamoDB's grammar, returns the SDK's own
// errors in the SDK's own wrapping, and keeps count of calls and of write capacity.
// A [Plan] decides for each call what goes wrong with it. A differential test holds
// DB against DynamoDB Local, so that what passes here passes there.
//
// What it leaves out on purpose ends in [ErrUnsupported]: bare attribute names and
// paths into documents. It has no streams, no local secondary indexes and no backups.
package dynamofake
