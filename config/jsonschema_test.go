package config

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
)

func compileJSONSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := JSONSchema()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("ratelimit.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("ratelimit.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func validate(t *testing.T, schema *jsonschema.Schema, text []byte) error {
	t.Helper()
	var doc any
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	return schema.Validate(doc)
}

// TestExamplesFollowTheJSONSchema validates every configuration of the examples. The file of
// examples/kustomize has that name too, and is a manifest of Kubernetes.
func TestExamplesFollowTheJSONSchema(t *testing.T) {
	schema := compileJSONSchema(t)
	files := []string{"ratelimit.yaml"}
	if err := filepath.WalkDir("../examples", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, "ratelimit.yaml") && !strings.Contains(path, "kustomize") {
			files = append(files, path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(files) < 8 {
		t.Fatalf("only %d configurations: %v", len(files), files)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(t, schema, text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestJSONSchemaRefuses gives the schema mistakes that it can tell.
func TestJSONSchemaRefuses(t *testing.T) {
	schema := compileJSONSchema(t)
	for _, text := range []string{
		"domain: a", "drain: 10", "store: {type: redis}", "server: {grpc: {address: localhost}}", "headers: [x]",
		"domains: [{rules: []}]", "domains: {}", "log: {denials: {per_second: 1001}}", "decision: {local: {share: 0}}",
		"limits: {system: {rpm: 5}}", "limits: {system: {rpm: {burst: 5}}}", "limits: {system: {rpm: {rate: 1/day, budget: {year: 1}}}}",
		"server: {http: {tls: {cert: a}}}", "domains: [{domain: a, rules: [{lease: {}}]}]", "domains: [{domain: a, rules: [{consume: {rpm: x}}]}]",
		"server: {admin: {tokens: {a: {role: read}}}}", "reservation: {keys: [{}]}",
	} {
		if err := validate(t, schema, []byte(text)); err == nil {
			t.Errorf("the schema takes %s", text)
		}
		if _, err := Parse("ratelimit.yaml", []byte(text), nil); err == nil {
			t.Errorf("Parse takes %s", text)
		}
	}
}

// literals returns the texts in backticks of a cell.
func literals(cell string) (all []string) {
	for i, part := range strings.Split(cell, "`") {
		if i%2 == 1 {
			all = append(all, part)
		}
	}
	return all
}

// kinds returns the types of a value, as the page calls them.
func kinds(s *yamlcfg.Shape) []string {
	each, isMap := s.Others.(*yamlcfg.Shape)
	switch {
	case s.Kind != "":
		return []string{s.Kind}
	case isMap && each != nil:
		return []string{"map"}
	case len(s.Properties) > 0:
		return []string{"object"}
	case len(s.AnyOf) > 0:
		var all []string
		for _, form := range s.AnyOf {
			all = append(all, kinds(form)...)
		}
		return all
	case len(s.Enum) == 1 && s.Enum[0] == true:
		return []string{"`true`"}
	case len(s.Enum) > 0:
		return []string{"enum"}
	case len(s.Type) == 0:
		return []string{"any"}
	case s.Type[0] == "array" && len(s.Items.Properties) > 0:
		return []string{"list of objects"}
	}
	return []string{map[string]string{"array": "list", "string": "text"}[s.Type[0]] + map[string]string{"integer": "integer", "number": "number", "boolean": "boolean"}[s.Type[0]]}
}

var digits = regexp.MustCompile(`\d{4,}\b`)

// ranges returns the ranges of a value, as the page writes them.
func ranges(s *yamlcfg.Shape) (all []string) {
	if s.Range != "" {
		all = append(all, digits.ReplaceAllStringFunc(s.Range, func(number string) string {
			if number == "1000000000000" {
				return "10^12"
			}
			for i := len(number) - 3; i > 0; i -= 3 {
				number = number[:i] + "," + number[i:]
			}
			return number
		}))
	}
	for _, form := range s.AnyOf {
		all = append(all, ranges(form)...)
	}
	return all
}

// pageRow is what the page says about a key.
type pageRow struct{ kind, preset, values, meaning string }

// checkRow compares the row of a key in docs/configuration.md with the key.
func checkRow(t *testing.T, key string, s *yamlcfg.Shape, r pageRow) {
	t.Helper()
	if s.Doc != r.meaning {
		t.Errorf("%s is described as %q in the page, and as %q in its table", key, r.meaning, s.Doc)
	}
	if got, want := strings.Split(r.kind, " or "), kinds(s); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
		t.Errorf("%s has the type %q in the page, and %q in its table", key, got, want)
	}
	if words := literals(r.values); r.kind == "enum" {
		slices.Sort(words)
		known := make([]string, len(s.Enum))
		for i, w := range s.Enum {
			known[i] = w.(string)
		}
		slices.Sort(known)
		if !slices.Equal(words, known) {
			t.Errorf("%s has the words %v in the page, and %v in its table", key, words, known)
		}
	}
	if want := ranges(s); len(want) > 0 && !slices.Equal([]string{strings.ReplaceAll(r.values, "`", "")}, want) {
		t.Errorf("%s has the range %q in the page, and %q in its table", key, r.values, want)
	}
	if s.Needed != (r.preset == "required") {
		t.Errorf("%s has the default %q in the page; required in its table: %v", key, r.preset, s.Needed)
	}
	if s.Default != nil && !slices.Equal(literals(r.preset), []string{fmt.Sprint(s.Default)}) {
		t.Errorf("%s has the default %s in the page, and %v in its table", key, r.preset, s.Default)
	}
}
