// Package balances reads and changes balances of buckets for operators: limiter.Buckets on
// a DynamoDB table.
//
// An adjustment is one transaction: a write for each shard of the bucket, the audit event, and
// the record of its key where it has one. The writes are those of plan.Adjust. They rest on the
// epochs of the items and not on their serial numbers, so that takes of replicas do not refuse
// them.
//
// # Leases
//
// Replicas hold parts of a bucket on lease, and decide from them in memory. An adjustment
// that depends on these parts recalls them first:
//
//	1  a slot without parts is written into the item. It asks all holders to return their
//	   leases, and not to ask for new ones.
//	2  each holder sees it within half a second, and returns its lease with the tokens that
//	   are left.
//	3  when no part is out the adjustment is made, and the slot goes with it.
//
// After [recallTime] the adjustment is made in any case. Leases that are still out, of
// replicas that are gone, then count as full: the tokens that their holders can still serve are
// not in the new balance. So the bound holds from the adjustment on, and the call ends within 5 s.
package balances
