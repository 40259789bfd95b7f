// Package client administers a running service over /v1 of its admin listener: entities,
// limits and audit. The command line uses it.
//
//	c := client.New(http.DefaultClient, "https://ratelimit:8082")
//	change, err := c.Namespace("default").PutEntity(ctx, api.Entity{ID: "key/k-1", Parent: "org/acme", Cascade: true}, client.Options{})
//
// A refusal of the service is an error with an *api.Problem in it; errors.AsType finds it.
package client
