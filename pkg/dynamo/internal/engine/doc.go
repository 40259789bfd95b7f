// Package engine decides calls over the buckets of one DynamoDB table.
//
// An [Engine] is the part of limiter.Store that takes, charges and refunds. It turns each op
// of a call into requests of the lanes of its shards (package lane), and waits for them. It
// rolls takes back when another bucket denies. It decides late when the caller's deadline
// passes while DynamoDB answers. Entities, limits and settlements are in other packages.
package engine
