// Package shards decides one op over the shards of a bucket, and when shards are split and
// merged.
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
// The package sends nothing, and starts nothing. Time is an argument.
package shards
