// Package api has the JSON of administration, /v1 on the admin listener, and its client: resources,
// changes and problems. The service shares it with the command line. /v1/openapi.json is the document
// of the API itself.
//
// Every noun has one resource: [Entity], [Limits], [AuditEvent]. A PUT sends the resource. Its
// answer is a [Change] with the resource before and after. A resource has an etag, which is a
// precondition in If-Match or in the member etag of the body. A [List] is one page of a list.
//
// # Client
//
// A [Client] administers a running service: entities, limits and audit. The command line uses it.
//
//	c := api.NewClient(http.DefaultClient, "https://ratelimit:8082")
//	change, err := c.Namespace("default").PutEntity(ctx, api.Entity{ID: "key/k-1", Parent: "org/acme", Cascade: true}, api.ClientOptions{})
//
// A refusal of the service is an error with a *[Problem] in it; errors.AsType finds it.
package api
