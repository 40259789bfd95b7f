package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/config"
)

// FuzzParse parses any text twice. Parse never panics, and both results are equal.
func FuzzParse(f *testing.F) {
	f.Add(config.Shipped())
	bad, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range bad {
		if strings.HasSuffix(name, "alias-bomb.yaml") {
			continue // as a seed it would take most of the time
		}
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	files := fstest.MapFS{"rules.d/a.yaml": {Data: []byte("domain: a\nrules: [{match: {a: b}, unlimited: true}]\n")}}
	f.Fuzz(func(t *testing.T, data []byte) {
		first, err := config.Parse("ratelimit.yaml", data, files)
		again, errAgain := config.Parse("ratelimit.yaml", data, files)
		if diff := cmp.Diff(text(err), text(errAgain)); diff != "" {
			t.Fatalf("problems differ:\n%s", diff)
		}
		if (first == nil) == (err == nil) {
			t.Fatalf("configuration %v and error %v", first, err)
		}
		if first == nil {
			return
		}
		if first.Hash != again.Hash || first.Rules == nil {
			t.Errorf("hash %s, then %s; rules %v", first.Hash, again.Hash, first.Rules)
		}
		if diff := cmp.Diff(first.Warnings, again.Warnings); diff != "" {
			t.Errorf("warnings differ:\n%s", diff)
		}
		if diff := cmp.Diff(settings(first), settings(again), compare()); diff != "" {
			t.Errorf("settings differ:\n%s", diff)
		}
	})
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
