package controlapi

import "github.com/ratelimit/ratelimit/pkg/admin"

// namespacePath is the beginning of the paths for a namespace.
const namespacePath = "/v1/namespaces/{namespace}"

// endpoint is a path and a method, for the router and the document.
type endpoint struct {
	method, path string
	role         admin.Role
	summary      string
	query        []param
	body         any  // a value of the type of the body; nil = none
	result       any  // a value of the type of the answer; nil = any JSON
	bare         bool // a PUT or DELETE without preconditions
	run          func(*call) (any, error)
}

// param is a parameter of a query.
type param struct {
	name, about string
}

// The parameters of several endpoints.
func pageParams(more ...param) []param {
	return append(more, param{"after", "the member next of the page before"}, param{"size", "most items of a page, 1 to 1000; 100 without it"})
}

func changeParams(more ...param) []param {
	return append([]param{{"dryRun", "true makes every check and changes nothing"}, {reasonParam, "why, for the audit: one line of at most 256 characters"}}, more...)
}

// reasonParam is the parameter of changes for the reason in their audit event.
const reasonParam = "reason"
