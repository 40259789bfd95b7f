package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// aliasBudget is how many values a file may have beyond one for each of its bytes. Only aliases of
// aliases make more.
const aliasBudget = 100_000

// maxMerges bounds how deep merge keys ("<<") may refer to one another.
const maxMerges = 16

// decoder reads one file. It goes on after a mistake, to find all of them.
type decoder struct {
	*report

	file   string
	scope  string // put before the paths of an included file, so that paths are unique
	budget int    // values left

	hidden map[*yaml.Node]bool // nodes whose text no problem repeats, see confidential
}

// value is a node and its path.
type value struct {
	node *yaml.Node // never an alias
	path string     // without the decoder's scope
}

// parse reads the one document of a file. It returns false when there is nothing to decode: the
// file is empty, or the mistake is reported.
func (d *decoder) parse(data []byte) (value, bool) {
	d.budget = len(data) + aliasBudget
	d.places[d.scope] = place{file: d.file}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if !errors.Is(err, io.EOF) {
			d.syntax(data, err)
		}
		return value{}, false
	}
	var second yaml.Node
	switch err := dec.Decode(&second); {
	case err == nil:
		d.fail(place{file: d.file, line: second.Line, column: second.Column}, "a second document begins here; a file is one document: remove the line \"---\"")
		return value{}, false
	case !errors.Is(err, io.EOF):
		d.syntax(data, err)
		return value{}, false
	}
	return d.value(doc.Content[0], ""), true
}

var (
	yamlError = regexp.MustCompile(`(?s)^yaml: (?:line (\d+): )?(.*)$`)
	// The errors of the parser, unlike those of the scanner, name the line before the malformed
	// mapping or list.
	yamlParser = regexp.MustCompile(`^did not find expected (?:key|node content|<document start>|'-' indicator|',' or)`)
	// The one error that repeats text of the file, which may be a secret.
	yamlAnchor = regexp.MustCompile(`(?s)^unknown anchor '(.*)' referenced$`)
)

func (d *decoder) syntax(data []byte, err error) {
	at := place{file: d.file}
	text, where := err.Error(), ""
	if m := yamlError.FindStringSubmatch(text); m != nil {
		at.line, _ = strconv.Atoi(m[1])
		text = m[2]
	}
	if yamlParser.MatchString(text) {
		at.line++
		where = " in the mapping or list that begins here"
	}
	if m := yamlAnchor.FindStringSubmatch(text); m != nil {
		before, _, _ := bytes.Cut(data, []byte("*"+m[1]))
		at.line = 1 + bytes.Count(before, []byte("\n"))
		text = "an alias (*) needs an anchor (&) of the same name before it; text that begins with * needs quotes"
	}
	d.fail(at, "not valid YAML%s: %s", where, text)
}

// value returns the value at a path, and remembers its place.
func (d *decoder) value(node *yaml.Node, path string) value {
	v := d.spend(node, path)
	d.places[d.scope+path] = d.at(v)
	return v
}

// spend returns the value at a path, or an empty one when the budget is spent.
func (d *decoder) spend(node *yaml.Node, path string) value {
	d.budget--
	if d.budget == 0 {
		d.incomplete = true
		d.fail(d.at(value{node, path}), "aliases make the file too large: use fewer, or write their values out")
	}
	if d.budget <= 0 {
		return value{node: &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: node.Line, Column: node.Column}, path: path}
	}
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	return value{node: node, path: path}
}

func (d *decoder) at(v value) place {
	return place{file: d.file, line: v.node.Line, column: v.node.Column, path: v.path}
}

// failf reports a mistake of a value. Once the budget is spent every value looks empty, and
// mistakes that follow from this are not reported.
func (d *decoder) failf(v value, format string, args ...any) {
	if d.budget > 0 {
		d.fail(d.at(v), format, args...)
	}
}

// pair is a key of a mapping and its value.
type pair struct {
	name string
	key  value
	node *yaml.Node
}

// mapping returns the keys of a mapping in the order of the file, each once. A missing value is an
// empty mapping.
func (d *decoder) mapping(v value) ([]pair, bool) {
	return d.merged(v, maxMerges)
}

func (d *decoder) merged(v value, merges int) ([]pair, bool) {
	if isNull(v.node) {
		return nil, true
	}
	if v.node.Kind != yaml.MappingNode {
		d.failf(v, "must be a mapping of keys to values, not %s", d.describe(v.node))
		return nil, false
	}
	pairs := make([]pair, 0, len(v.node.Content)/2)
	lines := make(map[string]int, len(v.node.Content)/2)
	var merge []*yaml.Node
	for i := 0; i+1 < len(v.node.Content); i += 2 {
		key, node := v.node.Content[i], v.node.Content[i+1]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			d.failf(value{node: key, path: v.path}, "a key must be text, not %s", d.describe(key))
			continue
		}
		if key.Tag == "!!merge" {
			merge = append(merge, node)
			continue
		}
		at := value{node: key, path: join(v.path, key.Value)}
		if first, ok := lines[key.Value]; ok {
			d.twice(at, v, first)
			continue
		}
		lines[key.Value] = key.Line
		pairs = append(pairs, pair{name: key.Value, key: at, node: node})
	}
	for _, node := range merge {
		pairs = d.merge(pairs, lines, d.spend(node, v.path), merges-1)
	}
	return pairs, true
}

// merge adds the pairs of the mappings that a merge key names, except those whose key is there
// already. Their path is that of the mapping with the merge key.
func (d *decoder) merge(pairs []pair, have map[string]int, v value, merges int) []pair {
	from := []*yaml.Node{v.node}
	if v.node.Kind == yaml.SequenceNode {
		from = v.node.Content
	}
	for _, node := range from {
		if merges == 0 {
			d.failf(v, "mappings are merged in a circle, or more than %d deep: write the keys out in place of <<", maxMerges-1)
			return pairs
		}
		more, _ := d.merged(d.spend(node, v.path), merges)
		for _, p := range more {
			if _, ok := have[p.name]; !ok {
				have[p.name] = p.key.node.Line
				pairs = append(pairs, p)
			}
		}
	}
	return pairs
}

// sequence returns the items of a list. A missing value is an empty list.
func (d *decoder) sequence(v value) ([]value, bool) {
	if isNull(v.node) {
		return nil, true
	}
	if v.node.Kind != yaml.SequenceNode {
		d.failf(v, "must be a list, not %s", d.describe(v.node))
		return nil, false
	}
	items := make([]value, len(v.node.Content))
	for i, node := range v.node.Content {
		items[i] = d.value(node, fmt.Sprintf("%s[%d]", v.path, i))
	}
	return items, true
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// maxQuoted bounds how many bytes of a value a problem repeats.
const maxQuoted = 80

// shorten cuts the middle out of text that is too long.
func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most/2], "") + "…" + strings.ToValidUTF8(s[len(s)-most/2:], "")
}

// join appends a key to a path. A key that would make the path ambiguous is quoted.
func join(path, key string) string {
	if key == "" || strings.ContainsFunc(key, func(r rune) bool {
		return r <= ' ' || r == 0x7f || r == '.' || r == '"' || r == '[' || r == ']'
	}) {
		key = strconv.Quote(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// failures grows with every mistake in this file and in the files before it.
func (d *decoder) failures() int { return len(d.errors) + d.dropped }
