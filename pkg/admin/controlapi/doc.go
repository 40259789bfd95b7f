// Package controlapi answers the requests of operators, /v1 on the admin listener: entities,
// limits, buckets, usage and the audit of a store, as the JSON of package api. It checks a whole
// request before it changes anything. Package admin decides which principal may make a request.
//
// A file uses only files of the lines above it, and of its own line:
//
//	levels, limitjson, problem, schema            parts of answers
//	top_counter, top_shard, top_table             most denied and most admitted keys
//	config, api, call, endpoint, edit             settings, a request, a change of a record
//	knownname, newname, room                      what is checked before a change
//	balances, choice, adjust                      buckets, which of them is meant, and its change
//	usage, effectivebudgets                       usage, and the budgets of limits that decide
//	entities, limits, effective, disabled, audit  endpoints of entities and limits
//	namespaces, purge, buckets, top, fleet        endpoints of the rest
//	search, family, filelimits                    endpoints that also read the configuration file
//	handler, document, routes                     the table of all endpoints, served and described
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
