// Package ratemodel checks the writes of rate leases over one number per limit.
// docs/design/leases.md has their table.
//
// # State
//
// A bucket is an item, or up to four if it is cut into shards; the bucket of its parent is
// another item. For each limit an item has one number v, the deficit in virtual time: v less
// the refill R(t) is missing. The rate and the capacity are cut into parts. The item is the
// centre; it has the parts that no holder has. A holder has parts of both in one slot of
// the item, and serves requests from a bucket of its own in memory.
//
// # Runs
//
// A run draws everything from its seed: limits, replicas, clocks, and when each
// message arrives. The store applies conditional writes as DynamoDB does: attributes
// against constants, SET and ADD of constants. Messages are lost, late and doubled.
// Replicas crash, sleep with and without their monotonic clock, and differ in their
// clocks. All numbers are integers.
//
// # Oracles
//
// The windows: one bucket admits all admissions of clients, each take at the clock of
// its planner. At the end it has at least the tokens that are left. With refunds,
// each effect lies between its plan and its commit.
//
// The ledger: a write changes the units of the centre and of the holders by its own
// tokens and by losses that have a cause. So no token appears without a cause. Nothing
// is lost but refill beyond a full part, a lift, and a dead lease.
//
// The account: each answer agrees with the store. An admission is paid once, also one
// that was late; a denial takes nothing that is not given back.
//
// A [Guard] is a condition or a rule that a run can do without, to show that one of
// the oracles notices.
package ratemodel
