package config

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

// schemaKeys returns every key of the schema by its name in docs/configuration.md.
func schemaKeys() []string { return slices.Sorted(maps.Keys(schemaShapes())) }

func schemaShapes() map[string]*yamlcfg.Shape {
	keys := make(map[string]*yamlcfg.Shape)
	add := func(key string, s *yamlcfg.Shape) {
		if keys[key] == nil { // descriptors nest: the first one has more below it
			keys[key] = s
		}
	}
	(&file{cfg: defaults()}).schema().Shape().Walk("", add)
	(&includedSchema{out: new([]domain)}).Shape().Walk("", add)
	return keys
}

// TestEveryKeyIsDocumented holds the schema against docs/configuration.md: a row with type and range, default
// and meaning for every key, and no row without a key.
func TestEveryKeyIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	shapes := schemaShapes()
	keys := schemaKeys()
	if len(keys) < 50 {
		t.Fatalf("the schema has only %d keys: %v", len(keys), keys)
	}
	_, tables, _ := strings.Cut(string(page), "\n## Every key\n")
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|(.*)\\|$").FindAllStringSubmatch(tables, -1)
	documented := make(map[string]bool, len(rows))
	types := map[string]bool{
		"object": true, "list": true, "list of objects": true, "map": true, "text": true, "address": true, "duration": true,
		"integer": true, "number": true, "boolean": true, "enum": true, "any": true,
	}
	for _, row := range rows {
		key, cells := row[1], strings.Split(row[2], "|")
		if documented[key] {
			t.Errorf("%s is described twice", key)
		}
		documented[key] = true
		if !slices.Contains(keys, key) {
			t.Errorf("%s is described and is no key", key)
		}
		if len(cells) != 3 || strings.TrimSpace(cells[0]) == "" || strings.TrimSpace(cells[1]) == "" || strings.TrimSpace(cells[2]) == "" {
			t.Errorf("%s needs a type with its range, a default and a meaning; it has %q", key, cells)
			continue
		}
		names, values, _ := strings.Cut(strings.TrimSpace(cells[0]), ": ")
		if kind, _, _ := strings.Cut(names, " or "); !types[kind] {
			t.Errorf("%s has the unknown type %q", key, cells[0])
		} else if s := shapes[key]; s != nil {
			checkRow(t, key, s, pageRow{names, strings.TrimSpace(cells[1]), values, strings.TrimSpace(cells[2])})
		}
	}
	for _, key := range keys {
		if !documented[key] {
			t.Errorf("%s is not described", key)
		}
	}
}

// TestExamplesOfThePageLoad loads the examples of docs/configuration.md that are
// whole files.
func TestExamplesOfThePageLoad(t *testing.T) {
	page, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	loaded := 0
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		var err error
		switch first, _, _ := strings.Cut(block[1], ":"); first {
		case "plans", "domains":
			_, err = Parse("page.yaml", []byte(block[1]), nil)
		case "domain":
			_, err = Parse("page.yaml", []byte("include: [{path: x.yaml}]"), fstest.MapFS{"x.yaml": {Data: []byte(block[1])}})
		default:
			continue
		}
		loaded++
		if err != nil {
			t.Errorf("%s\n%v", block[1], err)
		}
	}
	if loaded < 4 {
		t.Errorf("only %d examples were loaded", loaded)
	}
}

// TestPageQuotesOverdraw compares the times that the page gives for `overdraw: auto` with the real
// ones.
func TestPageQuotesOverdraw(t *testing.T) {
	page, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(page)), " ")
	for words, holds := range map[string]bool{
		"without a number in the last hour": descriptor.AskedWithin == time.Hour,
	} {
		if !holds || !strings.Contains(text, words) {
			t.Errorf("the page does not say %q, or it does not hold", words)
		}
	}
}
