// Package controlapi answers the requests of operators, /v1 on the admin listener: entities,
// limits, buckets, usage and the audit of a store, as the JSON of package api. It checks a whole
// request before it changes anything. Package admin decides which principal may make a request.
//
// A file uses only files of the lines above it and of its own line, without cycles:
//
//	api, problem, levels, schema               settings, and parts of answers
//	call, endpoint, edit                       a request, and a change of a record
//	entities, limits, disabled, namespaces,    the endpoints
//	purge, buckets, usage, top, audit
//	handler, document, routes                  the table of all endpoints, served and described
package controlapi
