package controlapi

import (
	"cmp"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/api"
)

// document returns the OpenAPI document of endpoints. It is made of the table of the routes and of
// the types of bodies and answers, so it cannot differ from them.
func document(endpoints []endpoint, version string) ([]byte, error) {
	s := schemas{components: object{}}
	paths := object{}
	for _, e := range endpoints {
		path, ok := paths[e.path].(object)
		if !ok {
			path = object{}
			paths[e.path] = path
		}
		path[strings.ToLower(e.method)] = s.operation(e)
	}
	return json.MarshalIndent(object{
		"openapi": "3.1.0",
		"info": object{
			"title":       "ratelimit administration",
			"version":     cmp.Or(version, "dev"),
			"description": "Entities, limits, buckets, usage and audit of a rate limit service, on its admin listener. Names in paths are percent-encoded, the slash too.",
		},
		"paths":      paths,
		"components": object{"schemas": s.components, "securitySchemes": object{"token": object{"type": "http", "scheme": "bearer"}}},
		"security":   []object{{"token": []string{}}, {}},
	}, "", "  ")
}

func (s *schemas) operation(e endpoint) object {
	op := object{
		"summary":     e.summary,
		"operationId": operationID(e),
		"description": "Needs the role " + e.role.String() + ".",
		"responses":   s.responses(e),
	}
	if params := parameters(e); len(params) > 0 {
		op["parameters"] = params
	}
	if e.body != nil {
		op["requestBody"] = object{"required": true, "content": jsonContent(s.body(e.body))}
	}
	return op
}

func (s *schemas) responses(e endpoint) object {
	result := object{}
	if e.result != nil {
		result = s.of(e.result)
	}
	all := object{
		"200":     object{"description": "Done", "content": jsonContent(result)},
		"default": object{"description": "A problem", "content": object{api.ProblemType: object{"schema": s.of(api.Problem{})}}},
	}
	if e.method == http.MethodPut {
		all["201"] = object{"description": "Created", "content": jsonContent(result)}
	}
	return all
}

func jsonContent(schema object) object {
	return object{"application/json": object{"schema": schema}}
}

// parameters are those of the path and of the query, and the preconditions of changes.
func parameters(e endpoint) []object {
	var all []object
	for _, m := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(e.path, -1) {
		all = append(all, parameter("path", m[1], "percent-encoded"))
	}
	for _, p := range e.query {
		all = append(all, parameter("query", p.name, p.about))
	}
	if (e.method == http.MethodPut || e.method == http.MethodDelete) && !e.bare {
		all = append(all, parameter("header", "If-Match", "an etag: the change is made only to a record that has it"))
		all = append(all, parameter("header", "If-None-Match", "*: the change is made only where nothing is stored"))
	}
	return all
}

func parameter(in, name, about string) object {
	return object{"in": in, "name": name, "required": in == "path", "description": about, "schema": object{"type": "string"}}
}

// operationID is the method and the nouns of the path, such as put_limits_resources.
func operationID(e endpoint) string {
	parts := []string{strings.ToLower(e.method)}
	for part := range strings.SplitSeq(strings.TrimPrefix(e.path, "/v1/"), "/") {
		if !strings.HasPrefix(part, "{") && (part != "namespaces" || !strings.Contains(e.path, "{namespace}/")) {
			parts = append(parts, strings.TrimSuffix(part, ".json"))
		}
	}
	if strings.HasSuffix(e.path, "}") {
		parts = append(parts, "one")
	}
	return strings.Join(parts, "_")
}
