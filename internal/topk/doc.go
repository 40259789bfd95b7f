// Package topk finds the keys with the most events of the last minute, in bounded memory.
//
// Keys are entities, resources and limits that clients may choose, so there may be any
// number of them. A [Counter] keeps a fixed number of keys, by the space-saving algorithm
// (Metwally, Agrawal, El Abbadi 2005): a new key takes the place of the one with the fewest
// events, and inherits its number as a possible error. A key with more than one event in
// 128 of its shard is never lost, and a reported number is never above the true one.
//
// Keys are divided among shards by their hash, so that goroutines that count different keys
// rarely wait for each other. An event costs a lookup in a map, and no allocation.
package topk
