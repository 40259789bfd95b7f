// Package api has the JSON of administration, /v1 on the admin listener: resources, changes
// and problems. The service and package client share it. The document of the API itself is
// served at /v1/openapi.json.
//
// Every noun has one resource: [Entity], [Limits], [AuditEvent]. A PUT sends the resource,
// and is answered with a [Change] that has it before and after. A resource has an etag, which
// If-Match (or the member etag of the body) turns into a precondition. Lists are a [List] a page.
package api
