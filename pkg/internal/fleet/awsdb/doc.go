// Package awsdb is the way to the items of a table: DynamoDB's client and its decorators, the
// meaning of errors; for all servers the clock, the circuit breaker, and the seam to the runtime.
//
//   - [Client] is the part of DynamoDB's API that the store uses. [NewClient] makes one
//     that never retries, and that refuses replies which are not DynamoDB's.
//   - [Items] are the items of a table on any server. [ItemsOf] puts writes in DynamoDB's
//     language, see expression.go.
//   - [Guard] is a circuit breaker around items: in an outage calls fail at once. It
//     refuses replies that are those to other calls, see [CheckReply].
//   - [Translate] turns an error of the SDK into one of limiter.Store's errors. One table
//     of codes decides; see errors.go.
//   - [Clock] is this machine's clock, corrected by the Date headers of replies.
//   - [Loop] starts goroutines, waits and draws random numbers. A simulation puts its own
//     event loop in the place of [Goroutines].
//
// Of the table's layout the package knows the key and the form of a write, and no record.
package awsdb
