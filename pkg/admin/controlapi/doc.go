// Package controlapi answers the requests of operators, /v1 on the admin listener: entities,
// limits, buckets, usage and the audit of a store, as the JSON of package api. It checks a whole
// request before it changes anything. Package admin decides which principal may make a request.
//
// A file uses only files of the lines above it and of its own line, without cycles:
//
//	api, problem, levels, schema               settings, and parts of answers
//	call, endpoint, edit                       a request, and a change of a record
//	balances, choice, adjust                   buckets, which of them is meant, and its change
//	entities, limits, disabled, namespaces,    the endpoints
//	purge, buckets, usage, top, audit
//	handler, document, routes                  the table of all endpoints, served and described
//
// # Most denied and most admitted keys
//
// A [TopCounter] finds the keys with the most events of the last minute, in bounded memory.
//
// Keys are entities, resources and limits that clients may choose, so there may be any
// number of them. A [TopCounter] keeps a fixed number of keys, by the space-saving algorithm
// (Metwally, Agrawal, El Abbadi 2005): a new key takes the place of the one with the fewest
// events, and inherits its number as a possible error. A key with more than one event in
// 128 of its shard is never lost, and a reported number is never above the true one.
//
// Keys are divided among shards by their hash, so that goroutines that count different keys
// rarely wait for each other. An event costs a lookup in a map, and no allocation.
package controlapi
