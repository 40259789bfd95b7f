// Package awscmd has the commands for AWS: the stack of a fleet's table and its cost, the aggregator
// and its function for AWS Lambda, and the migration from zae-limiter.
//
// # A function of AWS Lambda
//
// A [Function] aggregates the records of its calls: the event source is the stream of a table.
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
//
// # Budgets in a function
//
// A [BudgetWatch] has a program that runs only during its calls watch the budgets of a
// configuration, such as a function of AWS Lambda.
//
// The configuration is read when a [BudgetWatch] is opened, and again at the begin of a call that comes a
// minute later or more. One that has become bad changes nothing: the last good one stays in
// force. Events are sent at the end of the call that noted them. Nothing runs between two calls.
//
// # Cost
//
// The cost model estimates the bill of a fleet's table from its traffic. Counts of writes come
// from measurements in docs/scenarios.csv, which a test compares with the model. Prices are
// inputs. Of a Valkey or Redis server it estimates messages, processor and memory.
package awscmd
