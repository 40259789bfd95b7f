package config

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
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
		if filepath.Base(path) == "ratelimit.yaml" && !strings.Contains(path, "kustomize") {
			files = append(files, path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(files) < 6 {
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

// checkRow compares the row of a key in docs/configuration.md with the key.
func checkRow(t *testing.T, key string, s *yamlcfg.Shape, kind, preset, values, meaning string) {
	t.Helper()
	if s.Doc != meaning {
		t.Errorf("%s is described as %q in the page, and as %q in its table", key, meaning, s.Doc)
	}
	if words := literals(values); kind == "enum" && len(s.Enum) > 0 {
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
	if word, ok := s.Default.(string); ok && !slices.Equal(literals(preset), []string{word}) {
		t.Errorf("%s has the default %s in the page, and %s in its table", key, preset, word)
	}
}
