// Package plan makes the writes of a bucket's item: pure functions of the item's state,
// of requests, and of a time. It reads no clock, takes no lock, sends nothing.
//
// # Two kinds of writes
//
// A commuting write adds to the numbers of limits: takes, charges and refunds. Its
// conditions are the epoch of the item, bounds of each number that it rests on, and its
// own id. It is right in every state that passes them, so several can be under way at once,
// of any replicas.
//
// An exact write has one condition: no other write came in between. It turns the state
// that was seen into the next one, as of the time of the plan, by any rule. All that does
// not commute is exact: limits change, leases and shards change, a charge meets the debt
// floor, a full balance carries use.
//
// # Forms of a commuting write
//
// R(t) is where the number of a limit (schema.Balance.FullAt) stands when the limit is
// full at t. For tokens x and the room of the centre:
//
//	busy   R(t) ≤ v ≤ R(t) + room − x   v rises by x: the limit was not full, x was there
//	lift   v ≤ R(t) + δ                 v becomes R(t) + δ + x: it was full, but for δ
//	charge R(t) ≤ v, down to the floor  v rises by x
//	refund                              v falls by x; below R(t) means full, and no more
//
// A server that runs scripts takes the greater of v and R(t) itself. The first two are one form there:
//
//	above  v ≤ R(t) + room − x          v becomes max(v, R(t)) + x
//
// δ is 0 for a bucket that no other write is under way for: then every balance is
// exact to the unit. Otherwise takes that are applied together could meet a limit
// that is full for one and not for the other. δ prevents that, and costs at most the
// refill of δ.
//
// # Use
//
// [NewStage] is the bucket at a time. Requests are weighed and applied one after the
// other; [Stage.Write] is the write that does all of them. The next write may be planned
// from [Write.After] while this one is under way. A reply brings a state, and
// [Write.Settle] corrects the results of the requests by it. An exact write is planned from
// such a state only: another's write may leave the serial number that After foresees.
//
// # A clock that is not trusted
//
// A replica without a trusted clock plans at the latest time that is certain. That is
// the time of the state, [schema.Bucket.Time], or a later one that has certainly
// passed. A plan at an earlier time refills less and frees less than is due, so it denies
// more. Each form bounds v by the R of its own time. But where a limit has been full since,
// a take leaves it full. So package lane first waits for replies that correct the clock.
// A bucket without an item cannot be created so, and waits until the time is known.
package plan
