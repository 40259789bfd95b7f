// Package awslambda is the aggregator as an AWS Lambda function whose event source is the
// stream of a table.
//
// A call has records of one shard of the stream, in order. Its batch is that of a poller, and so
// are the positions that snapshots keep: a record that Lambda repeats counts once, also beside
// a poller that reads the same stream. Three kinds of records have three outcomes:
//
//   - A record that is counted, and archived where it has to be, is acknowledged.
//   - A record that can never be counted goes to the log with its key, and is acknowledged too:
//     as a failure it would hold up the records behind it.
//   - Where a write failed, the first record that needs it is the failure that is reported.
//     Lambda repeats that record and those behind it.
//
// The event source mapping needs a tumbling window, of any length: only calls of a window name
// their shard. The state of windows is not used.
package awslambda
