package chart_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"
)

// chartDir is where the chart is.
var chartDir = filepath.Join("..", "..", "charts", "ratelimit")

// values are those of an installation.
type values = map[string]any

// load reads the chart.
func load(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// modes returns the values of each mode, by the name of its file in the chart's ci.
func modes(t *testing.T) map[string]values {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(chartDir, "ci", "*-values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]values)
	for _, file := range files {
		all[strings.TrimSuffix(filepath.Base(file), "-values.yaml")] = readValues(t, file)
	}
	if len(all) < 4 {
		t.Fatalf("modes: got %d, want at least 4", len(all))
	}
	return all
}

func readValues(t *testing.T, file string) values {
	t.Helper()
	v, err := chartutil.ReadValuesFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// render returns the documents that Helm makes of the chart for the release edge, and its notes.
func render(c *chart.Chart, v values) (documents []string, notes string, err error) {
	return renderAs("edge", c, v)
}

// renderAs is render for a release of another name.
func renderAs(name string, c *chart.Chart, v values) (documents []string, notes string, err error) {
	release := chartutil.ReleaseOptions{Name: name, Namespace: "ratelimit", IsInstall: true, Revision: 1}
	all, err := chartutil.ToRenderValues(c, v, release, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, "", err
	}
	files, err := engine.Engine{Strict: true}.Render(c, all)
	if err != nil {
		return nil, "", err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, "NOTES.txt") {
			notes = files[name]
			continue
		}
		documents = append(documents, split(files[name])...)
	}
	return documents, notes, nil
}

// split returns the documents of a YAML file that are not empty.
func split(text string) []string {
	var documents []string
	for part := range strings.SplitSeq("\n"+text, "\n---\n") {
		var object any
		if err := yaml.Unmarshal([]byte(part), &object); err != nil || object != nil {
			documents = append(documents, part) // one that is no YAML fails where it is decoded
		}
	}
	return documents
}

// rendered are the objects of a mode, by kind and name.
func rendered(t *testing.T, v values) map[string]any {
	t.Helper()
	documents, _, err := render(load(t), v)
	if err != nil {
		t.Fatal(err)
	}
	return decoded(t, documents)
}

// decoded returns documents as Kubernetes reads them, by kind and name.
func decoded(t *testing.T, documents []string) map[string]any {
	t.Helper()
	objects := make(map[string]any)
	for _, document := range documents {
		name, object, err := decode([]byte(document))
		if err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		if objects[name] != nil {
			t.Errorf("%s is there twice", name)
		}
		objects[name] = object
	}
	return objects
}

// get returns an object of a type; it must be there.
func get[T any](t *testing.T, objects map[string]any, name string) *T {
	t.Helper()
	object, ok := objects[name].(*T)
	if !ok {
		t.Fatalf("%s: got %T; there are %v", name, objects[name], slices.Sorted(maps.Keys(objects)))
	}
	return object
}

// with returns values with one of them changed, named by its path.
func with(v values, path string, value any) values {
	key, rest, nested := strings.Cut(path, ".")
	changed := maps.Clone(v)
	if changed == nil {
		changed = make(values)
	}
	if nested {
		inner, _ := changed[key].(values)
		value = with(inner, rest, value)
	}
	changed[key] = value
	return changed
}

// readFile returns the text of a file.
func readFile(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
