// Package fleet has what the replicas of a service tell of themselves: decisions by result in steps of 10
// seconds, events, state, and the limits with the most decisions.
//
// A [Fleet] answers for all replicas that share a store. It has the numbers of its own process in memory, and
// those of the others from their reports in the store. It reads these when it is asked, and keeps what it has
// read for some seconds. A replica writes a report every 15 seconds, and a last one when it stops. A report has
// at most limiter.MaxReport bytes, whatever names clients invent.
//
// No decision waits for any of this. A store that does not answer costs the numbers of the other replicas, and
// nothing else.
package fleet
