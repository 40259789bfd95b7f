package schema_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The package comment of pkg/dynamo lists each attribute of a bucket's item.
func TestAttributesAreListed(t *testing.T) {
	text, err := os.ReadFile("../../../dynamo/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(string(text), "# Bucket items")
	if !found {
		t.Fatal("there is no list")
	}
	words := map[string]bool{}
	for _, word := range regexp.MustCompile(`[a-zA-Z0-9_{}]+`).FindAllString(list, -1) {
		words[word] = true
	}
	names := attributes(t)
	if len(names) < 29 {
		t.Errorf("attribute.go has %d attributes", len(names))
	}
	for constant, name := range names {
		forms := []string{name, name + "0", name + "{shard}"}
		if strings.HasPrefix(constant, "Limit") {
			forms = []string{"b_{limit}_" + name, "_" + name}
		}
		listed := false
		for _, form := range forms {
			listed = listed || words[form]
		}
		if !listed {
			t.Errorf("pkg/dynamo/doc.go does not list %s (%s)", name, constant)
		}
	}
}

// attributes returns the names of attributes by those of their constants.
func attributes(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "attribute.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		constant := spec.Names[0].Name
		attribute := strings.HasPrefix(strings.ToLower(constant), "attr") || strings.HasPrefix(constant, "Limit") && constant != "LimitPrefix"
		if literal, ok := spec.Values[0].(*ast.BasicLit); ok && attribute && constant != "AttrSchemaVersion" {
			names[constant], _ = strconv.Unquote(literal.Value)
		}
		return true
	})
	return names
}
