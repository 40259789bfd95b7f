// Package controlapi answers the requests of operators, /v1 on the admin listener: entities,
// limits, buckets, usage and the audit of a store, as the JSON of package api. It checks every request whole
// before it changes anything. Which principal may make a request is package admin's to say.
//
// A file uses only files of the lines above it and of its own line, never in a circle:
//
//	api, problem, levels, schema               settings, and what answers share
//	call, endpoint, edit                       a request, and a change of a record
//	entities, limits, disabled, namespaces,    the endpoints
//	purge, buckets, usage, top, audit
//	handler, document, routes                  the table of them all, served and described
package controlapi
