// Package migration brings entities, limits and balances from another system into a store.
//
// A reader of the other system, such as [Read], makes a [Set]. [Set.Check]
// takes out of it the records that no store can hold. [Run] then writes it. A run only
// makes records that are missing, and only lowers balances. So an interrupted run is made
// again from the beginning, and a run after a whole one changes nothing.
//
// # Tables of zae-limiter
//
// [Read] reads the DynamoDB tables of zae-limiter, a rate limiter in Python,
// into a [Set]. It reads the layouts of its versions 0.9 to 0.17:
//
//	schema 0.8.0   package 0.9     keys without a namespace, a bucket beside its entity
//	schema 0.8.0   package 0.10.0  the same keys behind the id of a namespace
//	schema 0.9.0   package 0.10.1  a bucket has partition keys of its own, one a shard
//	schema 0.10.0  package 0.11    the same, with local indexes
//
// Everything in a table is foreign data: an item that is not as the package writes it
// becomes a loss, and never an error.
package migration
