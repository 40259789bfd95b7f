// Package changestream is the stream of a table as package aggregator reads it, and the
// snapshots and the leases in the table that it writes.
//
// Records of other items than buckets are passed on without their content. So the secrets of
// reservations and the entities of a table get into no log of an aggregator.
package changestream
