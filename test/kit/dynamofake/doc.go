// Package dynamofake is a DynamoDB in memory, for tests that need a million calls,
// or calls that fail in a way of their choosing.
//
// A [DB] has the methods of the SDK's client that the store of a fleet calls. It
// parses and evaluates expressions by DynamoDB's grammar. It returns the SDK's own
// errors in the SDK's own wrapping. It counts calls and write capacity. A [Plan]
// decides for each call which fault it has. A differential test compares DB with
// DynamoDB Local, so a request that succeeds here succeeds there.
//
// DB has those parts of the grammar that expressions of the program use: comparisons,
// BETWEEN, attribute_exists, attribute_not_exists, begins_with, AND, OR and brackets in
// conditions, and SET with + and -, ADD and REMOVE in updates. Other functions and
// keywords, projections, bare attribute names and paths into documents end in
// [ErrUnsupported]. The package has no streams, no local secondary indexes and no
// backups.
//
// A file uses only files of the lines above it, and of its own line:
//
//	errors, number, value                             errors and values
//	lex, stream, placeholder                          the tokens of an expression, and its placeholders
//	operand, condition, update                        expressions, ready to be asked or applied
//	parse, parseoperand, parsecondition, parseupdate  their parsers
//	capacity, key, table, home                        tables, their indexes, places of items
//	gate, fault, plan, db                             calls and their faults
//	tables, snapshot, write, item                     all tables, one item
//	batch, transact, query                            several items
package dynamofake
