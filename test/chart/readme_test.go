package chart_test

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// leaves returns the values that no other values are in, by path. A map of the user's own
// is one; so are the parts of resources, which Kubernetes names.
func leaves(v values, path string) map[string]any {
	all := make(map[string]any)
	for key, value := range v {
		inner, nested := value.(values)
		if nested && len(inner) > 0 && path != "resources." {
			maps.Copy(all, leaves(inner, path+key+"."))
		} else {
			all[path+key] = value
		}
	}
	return all
}

// The README has every value with its default, and no other.
func TestReadme(t *testing.T) {
	want := leaves(readValues(t, filepath.Join(chartDir, "values.yaml")), "")
	for _, row := range readmeRows(t) {
		key, text := row[0], row[1]
		value, ok := want[key]
		if !ok {
			t.Errorf("%s: is in the README, and not in values.yaml", key)
			continue
		}
		delete(want, key)
		if text == "required" {
			text = "`\"\"`"
		}
		var got any
		if err := json.Unmarshal([]byte(text[1:len(text)-1]), &got); err != nil || !reflect.DeepEqual(got, asJSON(t, value)) {
			t.Errorf("%s: the README has the default %s, values.yaml %v (%v)", key, text, value, err)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		t.Errorf("%s: is not in the README", key)
	}
}

// readmeRows returns the keys of the README's table with their defaults. A row may have several keys, and
// then as many defaults.
func readmeRows(t *testing.T) [][2]string {
	t.Helper()
	const keys, defaults = "(`[^`]+`(?:, `[^`]+`)*)", "(required|`[^`]*`(?:, `[^`]*`)*)"
	quoted := regexp.MustCompile("required|`[^`]*`")
	var all [][2]string
	for _, row := range regexp.MustCompile(`(?m)^\| `+keys+` \|(?: .*)? \| `+defaults+` \|$`).FindAllStringSubmatch(readFile(t, chartDir, "README.md"), -1) {
		names, texts := quoted.FindAllString(row[1], -1), quoted.FindAllString(row[2], -1)
		if len(names) != len(texts) {
			t.Errorf("%s: the README has %d defaults, want %d", row[1], len(texts), len(names))
			continue
		}
		for i, name := range names {
			all = append(all, [2]string{strings.Trim(name, "`"), texts[i]})
		}
	}
	return all
}

// asJSON returns a value as JSON has it.
func asJSON(t *testing.T, value any) any {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// The schema has every value of values.yaml, and lets no other pass at any level.
func TestSchemaIsStrict(t *testing.T) {
	var schema any
	if err := json.Unmarshal([]byte(readFile(t, chartDir, "values.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	open := map[string]bool{ // objects of Kubernetes' own, and the configuration, which `ratelimit check` reads
		".resources.requests": true, ".resources.limits": true, ".affinity": true, ".global": true, ".config": true,
		".env.items.valueFrom": true,
	}
	objects := 0
	eachObject(schema, "", func(path string, node map[string]any) {
		objects++
		if _, stated := node["additionalProperties"]; !stated && !open[path] {
			t.Errorf("%s: does not say which other keys it may have", path)
		}
	})
	if objects < 20 {
		t.Errorf("objects: got %d, want more", objects)
	}
	_, _, err := render(load(t), modes(t)["memory"]) // the defaults pass, or none would
	if err != nil {
		t.Error(err)
	}
}

// eachObject calls visit for every schema of an object with named properties.
func eachObject(schema any, path string, visit func(string, map[string]any)) {
	node, ok := schema.(map[string]any)
	if !ok {
		return
	}
	if node["type"] == "object" {
		visit(path, node)
	}
	properties, _ := node["properties"].(map[string]any)
	for name, property := range properties {
		eachObject(property, path+"."+name, visit)
	}
	if items, ok := node["items"].(map[string]any); ok && items["properties"] != nil {
		eachObject(items, path+".items", visit)
	}
}
