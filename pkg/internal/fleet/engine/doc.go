// Package engine decides calls over the buckets of one table, and is the store of a fleet on it.
//
// A [Store] is the catalog, the settlements and an [Engine]. It speaks to the table by awsdb.Items alone, so that
// pkg/dynamo and pkg/valkey share it. Where a server comes back older, [Store.Renew] gives it another engine.
//
// An [Engine] is the part of limiter.Store that takes, charges and refunds. It turns each op
// of a call into requests of the lanes of its shards (package lane), and waits for them. It
// rolls takes back when another bucket denies. It decides late when the caller's deadline
// passes while the server answers. Entities, limits and settlements are in package catalog.
//
// # Shards
//
// The shard files decide one op over the shards of a bucket, and when shards are merged. A lane
// decides when its item is split (maintain.go of package lane).
//
// A bucket that is written too often for one item is split into up to schema.MaxShards
// items. Each has its part of every limit, and they are merged again after a quiet time. A
// [Forest] is the last state that a process saw of such buckets. It is a hint: the heir of
// a shard that is gone is asked in its place.
//
// A [Branch] is one op on its way. It asks one shard for all. When that has too little it
// asks as many as seem to have it, each for a part. Then it asks those that did not answer
// yet. In between other requests take tokens that were seen, so this is done a few times
// at most.
//
// The shard files send nothing, and start nothing. Time is an argument.
//
// # Balances
//
// [Balances] reads and changes balances of buckets for operators: limiter.Buckets on the table.
//
// An adjustment is one transaction: a write for each shard of the bucket, the audit event, and
// the record of its key where it has one. The writes are those of plan.Adjust. They rest on the
// epochs of the items and not on their serial numbers, so that takes of replicas do not refuse
// them.
//
// Replicas hold parts of a bucket on lease, and decide from them in memory. An adjustment
// that depends on these parts recalls them first:
//
//	1  a slot without parts is written into the item. It asks all holders to return their
//	   leases, and not to ask for new ones.
//	2  each holder sees it as it reads the item next, and returns its lease with the tokens
//	   that are left. A busy one reads it within 60 ms, each within half a second.
//	3  when no part is out the adjustment is made, and the slot goes with it.
//
// After [recallTime] the adjustment is made in any case. Leases that are still out, of
// replicas that are gone, then count as full: the tokens that their holders can still serve are
// not in the new balance. So the bound holds from the adjustment on, and the call ends within 5 s.
package engine
