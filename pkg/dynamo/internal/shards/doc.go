// Package shards decides one op over the shards of a bucket, and when shards are split and
// merged.
//
// A bucket that is written too often for one item is split into up to schema.MaxShards
// items, each with its part of every limit, and merged again after a quiet time. A [Forest]
// is what a process knows of such buckets. It is a hint: in the place of a shard that is
// none its heir is asked.
//
// A [Branch] is one op on its way. It asks one shard for all; when that has too little, as
// many as seem to have it, each for a part; then those that did not say what they have. In
// between others take what was seen, so that this is done a few times at most.
//
// The package sends nothing, and starts nothing. Time is an argument.
package shards
