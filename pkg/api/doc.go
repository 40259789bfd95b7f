// Package api has the JSON of administration, /v1 on the admin listener: resources, changes and
// problems. The service and package client share it. /v1/openapi.json is the document of the API
// itself.
//
// Every noun has one resource: [Entity], [Limits], [AuditEvent]. A PUT sends the resource. Its
// answer is a [Change] with the resource before and after. A resource has an etag, which is a
// precondition in If-Match or in the member etag of the body. A [List] is one page of a list.
package api
