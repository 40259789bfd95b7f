// Package dynamotest is the common ground of tests of the store of a fleet: a
// DynamoDB Local, a transport that records calls, and a proxy that makes them fail.
//
//   - [Start] starts DynamoDB Local, once for all tests of a process. A package that
//     uses it has a TestMain that calls [Main]. Under the command dynamolocal all
//     packages share one.
//   - [NewRecorder] sees each call and the capacity that it consumed, so that a test
//     can demand an exact sequence.
//   - [NewProxy] stands between a client and DynamoDB Local and injects faults that DynamoDB
//     Local never does: throttles, lost and late replies, partial batches.
package dynamotest
