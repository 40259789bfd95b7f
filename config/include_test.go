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

// domains are the names of a configuration's domains, in order.
func domains(c *config.Config) string {
	var names []string
	for _, d := range c.Rules.Domains() {
		names = append(names, d.Name())
	}
	return strings.Join(names, " ")
}

func TestInclude(t *testing.T) {
	files := fstest.MapFS{}
	for _, name := range []string{
		"etc/ratelimit.yaml", "etc/rules/a.yaml", "etc/rules/b.yml", "etc/rules/c.json", "etc/rules/.hidden.yaml",
		"etc/rules/sub/d.yaml", "etc/rules/.git/e.yaml", "etc/..data/f.yaml", "etc/g.txt", "other/h.yaml",
	} {
		files[name] = &fstest.MapFile{Data: []byte("domain: " + strings.TrimPrefix(name, "etc/") + "\n")}
	}
	for _, test := range []struct{ paths, want string }{
		{`[{path: "rules/*.yaml"}]`, "rules/a.yaml"},
		{`[{path: "rules/*"}]`, "rules/a.yaml rules/b.yml"},
		{`[{path: "rules/*.y*ml"}, {path: "rules/a.yaml"}]`, "rules/a.yaml rules/b.yml"},
		{`[{path: rules}]`, "rules/a.yaml rules/b.yml rules/sub/d.yaml"},
		{`[{path: rules/.git}]`, "rules/.git/e.yaml"},
		{`[{path: "..data/*.yaml"}]`, "..data/f.yaml"},
		{`[{path: rules/.hidden.yaml}, {path: g.txt}]`, "rules/.hidden.yaml g.txt"},
		{`[{path: "*.yaml"}]`, ""},
		{`[{path: "none/*.yaml"}]`, ""},
		{`[{path: ../other/h.yaml}]`, "other/h.yaml"},
		{`[{path: "*/*.yaml"}]`, "rules/a.yaml"},
	} {
		c, err := config.Parse("etc/ratelimit.yaml", []byte("include: "+test.paths+"\n"), files)
		if err != nil {
			t.Errorf("%s: %v", test.paths, err)
			continue
		}
		if got := domains(c); got != test.want {
			t.Errorf("%s includes %q, want %q", test.paths, got, test.want)
		}
	}
}

func TestIncludedForms(t *testing.T) {
	files := fstest.MapFS{
		"list.yaml":  {Data: []byte("domains: [{domain: one, unmatched: deny}, {domain: two}]\n")},
		"one.yaml":   {Data: []byte("domain: three\nnamespace: ns\nrules: [{match: {a: b}, unlimited: true}]\n")},
		"empty.yaml": {Data: []byte("# nothing yet\n")},
	}
	c, err := config.Parse("ratelimit.yaml", []byte("include: [{path: '*.yaml'}]\ndomains: [{domain: zero}]\n"), files)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := domains(c), "zero one two three"; got != want {
		t.Errorf("domains %q, want %q", got, want)
	}
}

// TestDirectoryWithLinks reads a mounted ConfigMap, and a link that leads back up.
func TestDirectoryWithLinks(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "..2024", "a.yaml"), "domain: a\n")
	write(t, filepath.Join(dir, "..2024", "sub", "b.yaml"), "domain: b\n")
	for link, target := range map[string]string{"..data": "..2024", "a.yaml": "..data/a.yaml", "sub": "..data/sub", "loop": "."} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	c, err := config.Load("", config.Options{Rules: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{config.ShippedName, filepath.Join(dir, "a.yaml"), filepath.Join(dir, "sub", "b.yaml")}
	if diff := cmp.Diff(want, c.Files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}
