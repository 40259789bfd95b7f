package controlapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/admin/controlapi"
)

type object = map[string]any

// The server answers every operation of the document as the document says, and has no other routes.
func TestDocument(t *testing.T) {
	s := newServer(t, nil)
	var doc object
	if err := json.Unmarshal(s.must(t, 200, http.MethodGet, "/v1/openapi.json", "").Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if doc["openapi"] != "3.1.0" {
		t.Errorf("version %v", doc["openapi"])
	}
	checker := checker{t: t, doc: doc, left: map[string]bool{}}
	for path, item := range doc["paths"].(object) {
		for method := range item.(object) {
			checker.left[strings.ToUpper(method)+" "+path] = true
		}
	}
	checker.ids()
	s.use(t, "key")
	s.denied.Add(time.Now(), controlapi.TopKey{Namespace: "default", Entity: "\xff", Resource: "r", Limit: "l"}, 1500)
	for _, call := range []struct{ operation, target, body string }{
		{"GET /v1/status", "", ""},
		{"GET /v1/openapi.json", "", ""},
		{"GET /v1/top", "/v1/top?by=denied&size=5&namespace=default&resource=r&limit=l", ""},
		{"GET /v1/top", "/v1/top?by=busiest", ""},
		{"GET /v1/top", "/v1/top?fleet=true", ""},
		{"GET /v1/decisions", "", ""},
		{"GET /v1/fleet", "", ""},
		{"PUT /v1/namespaces/{namespace}/entities/{entity}", entities + "/org", `{"name":"Org","metadata":{"a":"b"}}`},
		{"PUT /v1/namespaces/{namespace}/entities/{entity}", entities + "/k%FF%2F1", `{"parent":"org","cascade":true}`},
		{"PUT /v1/namespaces/{namespace}/entities/{entity}", entities + "/org?dryRun=true", `{"name":"Other"}`},
		{"GET /v1/namespaces/{namespace}/entities/{entity}", entities + "/k%FF%2F1", ""},
		{"GET /v1/namespaces/{namespace}/entities/{entity}", entities + "/none", ""},
		{"GET /v1/namespaces/{namespace}/entities", entities + "?size=1", ""},
		{"GET /v1/namespaces/{namespace}/entities", entities + "?parent=org", ""},
		{"PUT /v1/namespaces/{namespace}/limits/system", limits + "/system", `{"limits":{"rpm":"1/minute","tpm":{"rate":"5/day","burst":9,"max_debt":0}},"on_unavailable":"deny"}`},
		{"PUT /v1/namespaces/{namespace}/limits/resources/{resource}", limits + "/resources/gpt-4", `{"limits":{"rpm":"unlimited"}}`},
		{"PUT /v1/namespaces/{namespace}/limits/entities/{entity}/{resource}", limits + "/entities/org/_default_", `{"limits":{"rpm":"2/minute"}}`},
		{"GET /v1/namespaces/{namespace}/limits/system", limits + "/system", ""},
		{"GET /v1/namespaces/{namespace}/limits/resources/{resource}", limits + "/resources/gpt-4", ""},
		{"GET /v1/namespaces/{namespace}/limits/entities/{entity}/{resource}", limits + "/entities/org/_default_", ""},
		{"GET /v1/namespaces/{namespace}/limits", limits, ""},
		{"DELETE /v1/namespaces/{namespace}/limits/system", limits + "/system", ""},
		{"GET /v1/namespaces/{namespace}/limits/effective", limits + "/effective?entity=org&resource=gpt-4", ""},
		{"DELETE /v1/namespaces/{namespace}/limits/resources/{resource}", limits + "/resources/gpt-4", ""},
		{"DELETE /v1/namespaces/{namespace}/limits/entities/{entity}/{resource}", limits + "/entities/org/_default_", ""},
		{"DELETE /v1/namespaces/{namespace}/entities/{entity}", entities + "/k%FF%2F1", ""},
		{"GET /v1/namespaces", "/v1/namespaces?size=1", ""},
		{"GET /v1/namespaces/{namespace}", "/v1/namespaces/none", ""},
		{"PUT /v1/namespaces/{namespace}", "/v1/namespaces/t%FF%2F1?dryRun=true", ""},
		{"PUT /v1/namespaces/{namespace}", "/v1/namespaces/t%FF%2F1", ""},
		{"DELETE /v1/namespaces/{namespace}", "/v1/namespaces/t%FF%2F1", ""},
		{"POST /v1/namespaces/{namespace}/recover", "/v1/namespaces/t%FF%2F1/recover", ""},
		{"POST /v1/namespaces/{namespace}/purge", "/v1/namespaces/t%FF%2F1/purge", ""},
		{"DELETE /v1/namespaces/{namespace}", "/v1/namespaces/t%FF%2F1", ""},
		{"POST /v1/namespaces/{namespace}/purge", "/v1/namespaces/t%FF%2F1/purge", ""},
		{"GET /v1/namespaces/{namespace}", "/v1/namespaces/t%FF%2F1", ""},
		{"GET /v1/namespaces", "/v1/namespaces?deleted=true", ""},
		{"GET /v1/orphans", "/v1/orphans", ""},
		{"POST /v1/orphans/{id}/purge", "/v1/orphans/AAAAAAAAAAA/purge", ""},
		{"PUT /v1/namespaces/{namespace}/disabled/namespace", disabled + "/namespace", ""},
		{"PUT /v1/namespaces/{namespace}/disabled/resources/{resource}", disabled + "/resources/gpt-4?dryRun=true", ""},
		{"PUT /v1/namespaces/{namespace}/disabled/resources/{resource}", disabled + "/resources/gpt-4", ""},
		{"PUT /v1/namespaces/{namespace}/disabled/entities/{entity}", disabled + "/entities/k%FF", ""},
		{"GET /v1/namespaces/{namespace}/disabled", disabled, ""},
		{"GET /v1/namespaces/{namespace}/disabled/namespace", disabled + "/namespace", ""},
		{"GET /v1/namespaces/{namespace}/disabled/resources/{resource}", disabled + "/resources/gpt-4", ""},
		{"GET /v1/namespaces/{namespace}/disabled/entities/{entity}", disabled + "/entities/k%FF", ""},
		{"DELETE /v1/namespaces/{namespace}/disabled/namespace", disabled + "/namespace", ""},
		{"DELETE /v1/namespaces/{namespace}/disabled/resources/{resource}", disabled + "/resources/gpt-4", ""},
		{"DELETE /v1/namespaces/{namespace}/disabled/entities/{entity}", disabled + "/entities/k%FF", ""},
		{"GET /v1/namespaces/{namespace}/entities/{entity}/family", entities + "/k%FF%2F1/family", ""},
		{"GET /v1/namespaces/{namespace}/search", "/v1/namespaces/default/search?text=org", ""},
		{"GET /v1/namespaces/{namespace}/limits/file", limits + "/file", ""},
		{"GET /v1/namespaces/{namespace}/buckets", "/v1/namespaces/default/buckets?entity=key", ""},
		{"GET /v1/namespaces/{namespace}/bucket", "/v1/namespaces/default/bucket?entity=key&resource=r&limit=l", ""},
		{"GET /v1/namespaces/{namespace}/bucket", "/v1/namespaces/default/bucket?entity=key&resource=none", ""},
		{"POST /v1/namespaces/{namespace}/buckets/reset", "/v1/namespaces/default/buckets/reset?dryRun=true", `{"entity":"key","resource":"r"}`},
		{"POST /v1/namespaces/{namespace}/buckets/reset", "/v1/namespaces/default/buckets/reset", `{"entity":"key","resource":"r"}`},
		{"POST /v1/namespaces/{namespace}/buckets/set", "/v1/namespaces/default/buckets/set", `{"entity":"key","resource":"r","tokens":1.5}`},
		{"POST /v1/namespaces/{namespace}/buckets/top-up", "/v1/namespaces/default/buckets/top-up", `{"entity":"key","resource":"r","limit":"l","tokens":1,"once":"k"}`},
		{"POST /v1/namespaces/{namespace}/buckets/top-up", "/v1/namespaces/default/buckets/top-up", `{"entity":"key","resource":"r","limit":"l","tokens":1,"once":"k"}`},
		{"POST /v1/namespaces/{namespace}/buckets/take-out", "/v1/namespaces/default/buckets/take-out", `{"entity":"key","resource":"r","tokens":0.25}`},
		{"GET /v1/namespaces/{namespace}/usage", usage + "?entity=key&window=day&from=2020-01-01T00:00:00Z", ""},
		{"GET /v1/namespaces/{namespace}/usage", usage + "?window=week", ""},
		{"GET /v1/namespaces/{namespace}/usage/summary", usage + "/summary?window=month", ""},
		{"GET /v1/namespaces/{namespace}/usage/summary", usage + "/summary?entity=none", ""},
		{"GET /v1/namespaces/{namespace}/audit", "/v1/namespaces/default/audit?entity=key", ""},
		{"GET /v1/namespaces/{namespace}/audit", "/v1/namespaces/default/audit?entity=org", ""},
		{"GET /v1/namespaces/{namespace}/audit", "/v1/namespaces/default/audit", ""},
	} {
		checker.call(s, call.operation, call.target, call.body)
	}
	for operation := range checker.left {
		t.Errorf("no request of this test is %s", operation)
	}
}

// checker compares answers with a document.
type checker struct {
	t    *testing.T
	doc  object
	left map[string]bool // operations that were not called yet
}

// ids requires that no two operations have the same ID.
func (c *checker) ids() {
	seen := map[string]string{}
	for path, item := range c.doc["paths"].(object) {
		for method, op := range item.(object) {
			id := op.(object)["operationId"].(string)
			if seen[id] != "" {
				c.t.Errorf("%s %s and %s have the ID %s", method, path, seen[id], id)
			}
			seen[id] = method + " " + path
		}
	}
}

func (c *checker) call(s *server, operation, target, body string) {
	c.t.Helper()
	delete(c.left, operation)
	method, path, _ := strings.Cut(operation, " ")
	if target == "" {
		target = path
	}
	item, ok := c.doc["paths"].(object)[path].(object)
	if !ok {
		c.t.Fatalf("the document has no path %s", path)
	}
	op := item[strings.ToLower(method)].(object)
	if body != "" {
		c.check(operation+" body", schemaOf(op["requestBody"], "application/json"), parsed(c.t, []byte(body)))
	}
	w := s.do(c.t, method, target, body)
	response := op["responses"].(object)[strconv.Itoa(w.Code)]
	if response == nil {
		response = op["responses"].(object)["default"]
	}
	kind := w.Header().Get("Content-Type")
	c.check(fmt.Sprintf("%s %d", operation, w.Code), schemaOf(response, kind), parsed(c.t, w.Body.Bytes()))
}

func parsed(t *testing.T, text []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func schemaOf(content any, kind string) object {
	o, _ := content.(object)["content"].(object)[kind].(object)
	s, _ := o["schema"].(object)
	return s
}

// check requires that a value fits a schema.
func (c *checker) check(where string, schema object, v any) {
	c.t.Helper()
	if why := c.fits(schema, v); schema == nil || why != "" {
		c.t.Errorf("%s does not fit its schema %v: %s", where, schema, why)
	}
}

// fits returns the reason why a value does not fit a schema, "" if it does.
func (c *checker) fits(schema object, v any) string {
	if ref, ok := schema["$ref"].(string); ok {
		schema, ok = c.doc["components"].(object)["schemas"].(object)[strings.TrimPrefix(ref, "#/components/schemas/")].(object)
		if !ok {
			return "no component " + ref
		}
	}
	if choices, ok := schema["oneOf"].([]any); ok {
		fit := slices.ContainsFunc(choices, func(choice any) bool { return c.fits(choice.(object), v) == "" })
		return unless(fit, fmt.Sprintf("%v is none of %v", v, choices))
	}
	if values, ok := schema["enum"].([]any); ok {
		return unless(slices.Contains(values, v), fmt.Sprintf("%v is none of %v", v, values))
	}
	switch schema["type"] {
	case "object":
		return c.fitsObject(schema, v)
	case "array":
		items, ok := v.([]any)
		for _, item := range items {
			if why := c.fits(schema["items"].(object), item); why != "" {
				return why
			}
		}
		return unless(ok, fmt.Sprintf("%v is no array", v))
	case "string":
		return unless(reflect.TypeOf(v) == reflect.TypeFor[string](), fmt.Sprintf("%v is no string", v))
	case "boolean":
		return unless(reflect.TypeOf(v) == reflect.TypeFor[bool](), fmt.Sprintf("%v is no boolean", v))
	case "integer", "number":
		return unless(reflect.TypeOf(v) == reflect.TypeFor[float64](), fmt.Sprintf("%v is no number", v))
	case nil:
		return ""
	}
	return fmt.Sprintf("unknown type %v", schema["type"])
}

func unless(ok bool, why string) string {
	if ok {
		return ""
	}
	return why
}

func (c *checker) fitsObject(schema object, v any) string {
	members, ok := v.(object)
	if !ok {
		return fmt.Sprintf("%v is no object", v)
	}
	if required, ok := schema["required"].([]any); ok {
		for _, name := range required {
			if _, there := members[name.(string)]; !there {
				return fmt.Sprintf("%v lacks %s", v, name)
			}
		}
	}
	known, _ := schema["properties"].(object)
	for name, value := range members {
		member, ok := known[name].(object)
		if !ok {
			member, ok = schema["additionalProperties"].(object)
		}
		if !ok {
			return name + " is not in the schema"
		}
		if why := c.fits(member, value); why != "" {
			return name + ": " + why
		}
	}
	return ""
}
