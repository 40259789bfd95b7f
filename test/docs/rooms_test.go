package docs_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	module       = "github.com/ratelimit/ratelimit/"
	architecture = "../../docs/architecture.md"
)

// goPackage is a package as `go list` prints it.
type goPackage struct {
	ImportPath   string   `json:"ImportPath"`
	Imports      []string `json:"Imports"`
	TestImports  []string `json:"TestImports"`
	XTestImports []string `json:"XTestImports"`
	GoFiles      []string `json:"GoFiles"`
	Export       string   `json:"Export"` // the file of its exported types
}

// path returns the path of the package below the module.
func (p *goPackage) path() string { return strings.TrimPrefix(p.ImportPath, module) }

// goPackages returns all packages of the module.
func goPackages(t *testing.T) []goPackage {
	t.Helper()
	return goList(t, "-json=ImportPath,Imports,TestImports,XTestImports", "./...")
}

// goList returns the packages that `go list` prints.
func goList(t *testing.T, args ...string) []goPackage {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", append([]string{"list", "-pgo=off"}, args...)...) // #nosec G204 -- of a test
	list.Dir, list.Stderr = "../..", os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []goPackage
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// isTest reports whether a package has tests or their kits only. Packages of test data and of
// measurements have no code but that of tests.
func isTest(p *goPackage) bool {
	path := p.path()
	return strings.HasPrefix(path, "test/") || strings.HasPrefix(path, "examples/") ||
		path == "pkg/internal/fleet/fleetsim" || path == "pkg/internal/fleet/scripttest" || path == "pkg/internal/fleet/comparison"
}

var quotedPath = regexp.MustCompile("`((?:cmd|config|internal|pkg)(?:/[a-z0-9/]+)?)`")

// section returns the part of a page from one text to another.
func section(t *testing.T, page, from, to string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page, from)
	part, _, found := strings.Cut(rest, to)
	if !ok || !found {
		t.Fatalf("%s has no part from %q to %q", architecture, from, to)
	}
	return part
}

// rooms returns the packages of the map, in its order. The table of the fleet stands in its room.
func rooms(t *testing.T, page string) []string {
	t.Helper()
	var all []string
	fleet := column(section(t, page, "### The fleet", "`fleetsim`"), 0)
	for row := range strings.SplitSeq(section(t, page, "## Rooms", "Tests stand apart"), "\n") {
		cells := strings.Split(row, "|")
		if len(cells) != 5 {
			continue
		}
		all = append(all, paths(cells[3])...)
		if strings.Contains(cells[3], "#the-fleet") {
			all = append(all, fleet...)
		}
	}
	return all
}

// column returns the paths in a column of the tables of a text.
func column(text string, n int) []string {
	var all []string
	for row := range strings.SplitSeq(text, "\n") {
		if cells := strings.Split(row, "|"); len(cells) > n+2 {
			all = append(all, paths(cells[n+1])...)
		}
	}
	return all
}

// paths returns the paths that a text quotes.
func paths(text string) []string {
	found := quotedPath.FindAllStringSubmatch(text, -1)
	all := make([]string, len(found))
	for i := range found {
		all[i] = found[i][1]
	}
	return all
}

// The map of the rooms has each package of the program once. A package imports only packages that
// stand after it, and no part of the program imports a test or a kit.
func TestRooms(t *testing.T) {
	page, err := os.ReadFile(architecture)
	if err != nil {
		t.Fatal(err)
	}
	order := rooms(t, string(page))
	packages := goPackages(t)
	for i, path := range order {
		if slices.Index(order, path) != i {
			t.Errorf("the map has %s twice", path)
		}
		if !slices.ContainsFunc(packages, func(p goPackage) bool { return p.path() == path }) {
			t.Errorf("the map has %s, which is no package", path)
		}
	}
	for i := range packages {
		p := &packages[i]
		at := slices.Index(order, p.path())
		if isTest(p) {
			if at >= 0 {
				t.Errorf("the map has %s, which is for tests", p.path())
			}
			continue
		}
		if at < 0 {
			t.Errorf("the map has no %s", p.path())
		}
		for _, imported := range p.Imports {
			path, own := strings.CutPrefix(imported, module)
			if own && slices.Index(order, path) <= at {
				t.Errorf("%s imports %s, which does not stand after it", p.path(), path)
			}
		}
	}
}

// Tests from the outside see what a user sees: files, flags and the wire. Only those of a fleet
// are replicas of the store.
func TestTestsStayOutside(t *testing.T) {
	for _, p := range goPackages(t) {
		path := p.path()
		if !strings.HasPrefix(path, "test/") || strings.HasPrefix(path, "test/kit/") || path == "test/fleet" {
			continue
		}
		for _, imported := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			if of, own := strings.CutPrefix(imported, module); own && !strings.HasPrefix(of, "test/") {
				t.Errorf("%s imports %s", path, of)
			}
		}
	}
}

// A package of the program imports a library only where the table of libraries has both.
func TestLibraries(t *testing.T) {
	page, err := os.ReadFile(architecture)
	if err != nil {
		t.Fatal(err)
	}
	users := make(map[string][]string) // of a library
	for row := range strings.SplitSeq(section(t, string(page), "### Libraries", "\n## "), "\n") {
		cells := strings.Split(row, "|")
		if len(cells) != 4 {
			continue
		}
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1) {
			users[m[1]] = paths(cells[2])
		}
	}
	used := make(map[string]bool)
	for _, p := range goPackages(t) {
		if isTest(&p) {
			continue
		}
		for _, imported := range p.Imports {
			host, _, _ := strings.Cut(imported, "/")
			if strings.HasPrefix(imported, module) || !strings.Contains(host, ".") {
				continue
			}
			library := libraryOf(users, imported)
			used[library] = true
			if !slices.ContainsFunc(users[library], func(of string) bool { return p.path() == of || strings.HasPrefix(p.path(), of+"/") }) {
				t.Errorf("%s imports %s, and the table of libraries does not have it", p.path(), imported)
			}
		}
	}
	for library := range users {
		if !used[library] {
			t.Errorf("the table has the library %s, which no package imports", library)
		}
	}
}

// libraryOf returns the library of the table that has a package; "" where there is none.
func libraryOf(users map[string][]string, imported string) string {
	for library := range users {
		if imported == library || strings.HasPrefix(imported, library+"/") {
			return library
		}
	}
	return ""
}
