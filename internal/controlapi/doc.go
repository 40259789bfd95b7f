// Package controlapi answers the requests of operators, /v1 on the admin listener: entities,
// limits, buckets, usage and the audit of a store, as the JSON of package api. It checks every request whole
// before it changes anything. Which principal may make a request is package admin's to say.
package controlapi
