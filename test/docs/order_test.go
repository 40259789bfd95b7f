package docs_test

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// orderBegin begins the list of files in a package comment. A line has names of files, and what these are.
const orderBegin = "// A file uses only files of the lines above it, and of its own line:\n//\n"

// fileName returns the name of a file without folder and .go.
func fileName(path string) string { return strings.TrimSuffix(filepath.Base(path), ".go") }

// usesOf returns a name by which a file of a package uses another one, for each such pair of files.
func usesOf(t *testing.T, p *goPackage, fset *token.FileSet, imports types.Importer) map[[2]string]string {
	t.Helper()
	files := make([]*ast.File, 0, len(p.GoFiles))
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(fset, filepath.Join("..", "..", p.path(), name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	info := types.Info{Uses: make(map[*ast.Ident]types.Object)}
	pkg, err := (&types.Config{Importer: imports}).Check(p.ImportPath, fset, files, &info)
	if err != nil {
		t.Fatal(err)
	}
	uses := make(map[[2]string]string)
	for id, object := range info.Uses {
		pair := [2]string{fileName(fset.Position(id.Pos()).Filename), fileName(fset.Position(object.Pos()).Filename)}
		if object.Pkg() == pkg && pair[0] != pair[1] && (uses[pair] == "" || id.Name < uses[pair]) {
			uses[pair] = id.Name
		}
	}
	return uses
}

// orderOf returns the line of each file in a list, and the number of lines.
func orderOf(t *testing.T, doc, list string) (order map[string]int, lines int) {
	t.Helper()
	order = make(map[string]int)
	for text := range strings.Lines(list) {
		row, found := strings.CutPrefix(text, "//\t")
		if !found {
			break
		}
		lines++
		names, _, _ := strings.Cut(strings.TrimSpace(row), "  ")
		for name := range strings.SplitSeq(names, ", ") {
			if order[name] > 0 {
				t.Errorf("%s: %s is in line %d and in line %d of the list: take it out of one", doc, name, order[name], lines)
			}
			if _, err := os.Stat(filepath.Join("..", "..", filepath.Dir(doc), name+".go")); err != nil {
				t.Errorf("%s: line %d of the list has %q: want names of files without .go, as in \"a, b   what they are\"", doc, lines, name)
			}
			order[name] = lines
		}
	}
	return order, lines
}

// checkOrder reports what is wrong with the list of a package.
func checkOrder(t *testing.T, doc, list string, uses map[[2]string]string) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join("..", "..", filepath.Dir(doc), "*.go")) // a pattern without a mistake
	order, lines := orderOf(t, doc, list)
	for _, file := range files {
		name, first, last := fileName(file), 1, lines
		for other, line := range order {
			used := uses[[2]string{name, other}]
			if used != "" {
				first = max(first, line)
			}
			if uses[[2]string{other, name}] != "" {
				last = min(last, line)
			}
			if used != "" && order[name] > 0 && order[name] < line {
				t.Errorf("%s: %s in line %d uses %s of %s in line %d: move %[2]s down or %[5]s up, or put both in one line", doc, name, order[name], used, other, line)
			}
		}
		if order[name] == 0 && name != "doc" && !strings.HasSuffix(name, "_test") {
			t.Errorf("%s: the list lacks %s: name it in line %d or below, and in line %d or above", doc, name, first, last)
		}
	}
}

// Each list of the files of a package has all of them, in the order of their uses.
func TestOrderOfFiles(t *testing.T) {
	lists, exports := make(map[string]string), make(map[string]string)
	args := []string{"-deps", "-export", "-json=ImportPath,GoFiles,Export"}
	for _, p := range goPackages(t) {
		text, _ := os.ReadFile(filepath.Join("..", "..", p.path(), "doc.go")) // #nosec G304 -- of the repository; not all have one
		if _, list, found := strings.Cut(string(text), orderBegin); found {
			lists[p.ImportPath], args = list, append(args, p.ImportPath)
		} else if strings.Contains(string(text), "A file uses ") {
			t.Errorf("%s/doc.go: the list of files must begin with\n%s", p.path(), orderBegin)
		}
	}
	packages, fset := goList(t, args...), token.NewFileSet()
	for i := range packages {
		exports[packages[i].ImportPath] = packages[i].Export
	}
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for i := range packages {
		if list, ok := lists[packages[i].ImportPath]; ok {
			checkOrder(t, packages[i].path()+"/doc.go", list, usesOf(t, &packages[i], fset, imports))
		}
	}
}
