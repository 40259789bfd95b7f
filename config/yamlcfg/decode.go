package yamlcfg

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// aliasBudget is how many values a file may have beyond one for each of its bytes. Only aliases of
// aliases make more.
const aliasBudget = 100_000

// maxMerges bounds how deep merge keys ("<<") may refer to one another.
const maxMerges = 16

// Decoder reads one file. It goes on after a mistake, to find all of them.
type Decoder struct {
	*Report

	file   string
	Scope  string // put before the paths of an included file, so that paths are unique
	budget int    // values left

	hidden map[*yaml.Node]bool // nodes whose text no problem repeats, see confidential
}

// NewDecoder returns the decoder of a file, which adds to a report.
func NewDecoder(r *Report, file, scope string) *Decoder {
	r.places[scope] = Place{File: file}
	return &Decoder{Report: r, file: file, Scope: scope, hidden: make(map[*yaml.Node]bool)}
}

// Value is a node and its path.
type Value struct {
	node *yaml.Node // never an alias
	Path string     // without the decoder's scope
}

// Parse reads the one document of a file. It returns false when there is nothing to decode: the
// file is empty, or the mistake is reported.
func (d *Decoder) Parse(data []byte) (Value, bool) {
	d.budget = len(data) + aliasBudget
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if !errors.Is(err, io.EOF) {
			d.syntax(data, err)
		}
		return Value{}, false
	}
	var second yaml.Node
	switch err := dec.Decode(&second); {
	case err == nil:
		d.Fail(Place{File: d.file, Line: second.Line, column: second.Column}, "a second document begins here; a file is one document: remove the line \"---\"")
		return Value{}, false
	case !errors.Is(err, io.EOF):
		d.syntax(data, err)
		return Value{}, false
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

func (d *Decoder) syntax(data []byte, err error) {
	at := Place{File: d.file}
	text, where := err.Error(), ""
	if m := yamlError.FindStringSubmatch(text); m != nil {
		at.Line, _ = strconv.Atoi(m[1])
		text = m[2]
	}
	if yamlParser.MatchString(text) {
		at.Line++
		where = " in the mapping or list that begins here"
	}
	if m := yamlAnchor.FindStringSubmatch(text); m != nil {
		before, _, _ := bytes.Cut(data, []byte("*"+m[1]))
		at.Line = 1 + bytes.Count(before, []byte("\n"))
		text = "an alias (*) needs an anchor (&) of the same name before it; text that begins with * needs quotes"
	}
	d.Fail(at, "not valid YAML%s: %s", where, text)
}

// value returns the value at a path, and remembers its place.
func (d *Decoder) value(node *yaml.Node, path string) Value {
	v := d.spend(node, path)
	d.places[d.Scope+path] = d.At(v)
	return v
}

// spend returns the value at a path, or an empty one when the budget is spent.
func (d *Decoder) spend(node *yaml.Node, path string) Value {
	d.budget--
	if d.budget == 0 {
		d.Incomplete = true
		d.Fail(d.At(Value{node, path}), "aliases make the file too large: use fewer, or write their values out")
	}
	if d.budget <= 0 {
		return Value{node: &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: node.Line, Column: node.Column}, Path: path}
	}
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	return Value{node: node, Path: path}
}

// At returns the place of a value.
func (d *Decoder) At(v Value) Place {
	return Place{File: d.file, Line: v.node.Line, column: v.node.Column, Path: v.Path}
}

// Failf reports a mistake of a value. Once the budget is spent every value looks empty, and
// mistakes that follow from this are not reported.
func (d *Decoder) Failf(v Value, format string, args ...any) {
	if d.budget > 0 {
		d.Fail(d.At(v), format, args...)
	}
}

// pair is a key of a mapping and its value.
type pair struct {
	name string
	key  Value
	node *yaml.Node
}

// mapping returns the keys of a mapping in the order of the file, each once. A missing value is an
// empty mapping.
func (d *Decoder) mapping(v Value) ([]pair, bool) {
	return d.merged(v, maxMerges)
}

func (d *Decoder) merged(v Value, merges int) ([]pair, bool) {
	if isNull(v.node) {
		return nil, true
	}
	if v.node.Kind != yaml.MappingNode {
		d.Failf(v, "must be a mapping of keys to values, not %s", d.Describe(v))
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
			d.Failf(Value{node: key, Path: v.Path}, "a key must be text, not %s", d.Describe(Value{node: key}))
			continue
		}
		if key.Tag == "!!merge" {
			merge = append(merge, node)
			continue
		}
		at := Value{node: key, Path: Join(v.Path, key.Value)}
		if first, ok := lines[key.Value]; ok {
			d.twice(at, v, first)
			continue
		}
		lines[key.Value] = key.Line
		pairs = append(pairs, pair{name: key.Value, key: at, node: node})
	}
	for _, node := range merge {
		pairs = d.merge(pairs, lines, d.spend(node, v.Path), merges-1)
	}
	return pairs, true
}

// merge adds the pairs of the mappings that a merge key names, except those whose key is there
// already. Their path is that of the mapping with the merge key.
func (d *Decoder) merge(pairs []pair, have map[string]int, v Value, merges int) []pair {
	from := []*yaml.Node{v.node}
	if v.node.Kind == yaml.SequenceNode {
		from = v.node.Content
	}
	for _, node := range from {
		if merges == 0 {
			d.Failf(v, "mappings are merged in a circle, or more than %d deep: write the keys out in place of <<", maxMerges-1)
			return pairs
		}
		more, _ := d.merged(d.spend(node, v.Path), merges)
		for _, p := range more {
			if _, ok := have[p.name]; !ok {
				have[p.name] = p.key.node.Line
				pairs = append(pairs, p)
			}
		}
	}
	return pairs
}

// Sequence returns the items of a list. A missing value is an empty list.
func (d *Decoder) Sequence(v Value) ([]Value, bool) {
	if isNull(v.node) {
		return nil, true
	}
	if v.node.Kind != yaml.SequenceNode {
		d.Failf(v, "must be a list, not %s", d.Describe(v))
		return nil, false
	}
	items := make([]Value, len(v.node.Content))
	for i, node := range v.node.Content {
		items[i] = d.value(node, fmt.Sprintf("%s[%d]", v.Path, i))
	}
	return items, true
}

// Has reports whether the value is a mapping with one of the keys.
func (v Value) Has(keys ...string) bool {
	n := v.node
	for i := 0; n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
		if slices.Contains(keys, n.Content[i].Value) {
			return true
		}
	}
	return false
}

// Null reports whether there is no value, or null.
func (v Value) Null() bool { return isNull(v.node) }

// Text is a scalar as it is written.
func (v Value) Text() string { return v.node.Value }

// Is reports whether the value is a scalar with one of the tags of YAML, "!!str".
func (v Value) Is(tags ...string) bool {
	return v.node.Kind == yaml.ScalarNode && slices.Contains(tags, v.node.Tag)
}

// IsScalar reports whether the value is text, a number or the like; null too.
func (v Value) IsScalar() bool { return v.node.Kind == yaml.ScalarNode }

// IsMapping reports whether the value is a mapping of keys to values.
func (v Value) IsMapping() bool { return v.node.Kind == yaml.MappingNode }

// IsList reports whether the value is a list.
func (v Value) IsList() bool { return v.node.Kind == yaml.SequenceNode }

// Size is the number of items of a list.
func (v Value) Size() int { return len(v.node.Content) }

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// MaxQuoted bounds how many bytes of a value a problem repeats.
const MaxQuoted = 80

// Shorten cuts the middle out of text that is too long.
func Shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most/2], "") + "…" + strings.ToValidUTF8(s[len(s)-most/2:], "")
}

// Join appends a key to a path. A key that would make the path ambiguous is quoted.
func Join(path, key string) string {
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
