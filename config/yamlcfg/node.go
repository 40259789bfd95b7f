package yamlcfg

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// maxMerges bounds how deep merge keys ("<<") may refer to one another.
const maxMerges = 16

// Decoder reads one file. It goes on after a mistake, to find all of them.
type Decoder struct {
	*Report

	file   string
	scope  string // put before the paths of an included file, so that paths are unique
	budget int    // values left

	hidden map[*yaml.Node]bool // values whose text no problem repeats, see Confidential
}

// NewDecoder returns the decoder of a file, which adds to a report.
func NewDecoder(r *Report, file, scope string) *Decoder {
	r.places[scope] = Place{File: file}
	return &Decoder{Report: r, file: file, scope: scope, hidden: make(map[*yaml.Node]bool)}
}

// Node is a value in a file, and the decoder that reads it.
type Node struct {
	*Decoder

	yaml *yaml.Node // never an alias
	path string     // without the decoder's scope
}

// Path is the path of the value, unique among all files of the report.
func (n Node) Path() string { return n.scope + n.path }

// Below is the path of a key below the value.
func (n Node) Below(key string) string { return n.scope + Join(n.path, key) }

// Where is the place of the value.
func (n Node) Where() Place {
	return Place{File: n.file, Line: n.yaml.Line, column: n.yaml.Column, Path: n.path}
}

// Line is the line of the value, from 1.
func (n Node) Line() int { return n.yaml.Line }

// At is the place of the value, "file:line", for a message about another place.
func (n Node) At() string { return n.file + ":" + strconv.Itoa(n.Line()) }

// Failf reports a mistake of the value. Once the budget is spent every value looks empty, and
// mistakes that follow from this are not reported.
func (n Node) Failf(format string, args ...any) {
	if n.budget > 0 {
		n.Fail(n.Where(), format, args...)
	}
}

// FailAt reports a mistake of a key below the value.
func (n Node) FailAt(key, format string, args ...any) {
	n.Fail(n.Find(n.Below(key)), format, args...)
}

// Empty reports whether there is no value, or null.
func (n Node) Empty() bool { return n.Is("!!null") }

// IsList reports whether the value is a list.
func (n Node) IsList() bool { return n.yaml.Kind == yaml.SequenceNode }

// IsMapping reports whether the value is a mapping of keys to values.
func (n Node) IsMapping() bool { return n.yaml.Kind == yaml.MappingNode }

// IsScalar reports whether the value is text, a number or the like.
func (n Node) IsScalar() bool { return n.yaml.Kind == yaml.ScalarNode && !n.Empty() }

// Is reports whether the value is a scalar with one of the tags of YAML, "!!str".
func (n Node) Is(tags ...string) bool {
	return n.yaml.Kind == yaml.ScalarNode && slices.Contains(tags, n.yaml.Tag)
}

// Raw is a scalar as it is written.
func (n Node) Raw() string { return n.yaml.Value }

// HasText reports whether the text of the value, or of one below it, contains a part.
func (n Node) HasText(part string) bool {
	return strings.Contains(n.yaml.Value, part) || slices.ContainsFunc(n.yaml.Content, func(below *yaml.Node) bool { return Node{yaml: below}.HasText(part) })
}

// Has reports whether the value is a mapping with one of the keys. It may not be read yet.
func (n Node) Has(keys ...string) bool {
	for i := 0; n.IsMapping() && i < len(n.yaml.Content); i += 2 {
		if slices.Contains(keys, n.yaml.Content[i].Value) {
			return true
		}
	}
	return false
}

// Given reports whether a mapping that was read has one of the keys, itself or by a merge key.
func (n Node) Given(keys ...string) bool {
	return slices.ContainsFunc(keys, func(key string) bool {
		_, ok := n.places[n.Below(key)]
		return ok
	})
}

// Entries reads a mapping whose keys are names that the user chooses, in the order of the file.
// thing is the kind of thing that the keys name, such as "an entity".
func (n Node) Entries(thing string, each func(name string, value Node)) {
	pairs := n.pairs(maxMerges)
	for _, p := range pairs {
		if p.name == "" {
			p.key.Failf("the name of %s must not be empty", thing)
			continue
		}
		each(p.name, n.value(p.value, p.key.path))
	}
}

// Items reads a list. A missing value is an empty list.
func (n Node) Items(each func(Node)) {
	switch {
	case n.Empty():
	case !n.IsList():
		n.Failf("must be a list, not %s", n.Describe())
	default:
		items := make([]Node, n.Size())
		for i, item := range n.yaml.Content {
			items[i] = n.value(item, fmt.Sprintf("%s[%d]", n.path, i))
		}
		for _, item := range items {
			each(item)
		}
	}
}

// Size is the number of items of a list.
func (n Node) Size() int { return len(n.yaml.Content) }

// Value reads any value, in the types that encoding/json has for the same value.
func (n Node) Value(out *any) {
	if err := n.yaml.Decode(out); err != nil {
		n.Failf("%s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
}

// Hide keeps the text of a value, and of all values below it, out of every problem.
func (n Node) Hide() {
	if n.yaml == nil || n.hidden[n.yaml] {
		return
	}
	n.hidden[n.yaml] = true
	Node{Decoder: n.Decoder, yaml: n.yaml.Alias}.Hide()
	for _, below := range n.yaml.Content {
		Node{Decoder: n.Decoder, yaml: below}.Hide()
	}
}

// Describe names the kind of a value, for "must be …, not …".
func (n Node) Describe() string {
	text, number := fmt.Sprintf("the text %q", Shorten(n.Raw(), MaxQuoted)), Shorten(n.Raw(), MaxQuoted)
	if n.hidden[n.yaml] {
		text, number = "text", "a value"
	}
	switch {
	case n.IsMapping():
		return "a mapping"
	case n.IsList():
		return "a list"
	case n.Empty():
		return "nothing"
	case n.yaml.Tag == "!!str":
		return text
	case n.yaml.Tag != "!!int" && n.yaml.Tag != "!!float":
		return number
	case n.hidden[n.yaml]:
		return "a number"
	default:
		return "the number " + number
	}
}

// isPlaceholder reports whether a node is {key}, the text of a placeholder without its quotes.
func isPlaceholder(y *yaml.Node) bool {
	return y.Kind == yaml.MappingNode && y.Style&yaml.FlowStyle != 0 && len(y.Content) == 2 && y.Content[0].Kind == yaml.ScalarNode && y.Content[1].Tag == "!!null" && y.Content[1].Value == ""
}

// value returns the value at a path, and remembers its place.
func (d *Decoder) value(node *yaml.Node, path string) Node {
	n := d.spend(node, path)
	d.places[n.Path()] = n.Where()
	return n
}

// spend returns the value at a path, or an empty one when the budget is spent.
func (d *Decoder) spend(node *yaml.Node, path string) Node {
	n := Node{d, node, path}
	d.budget--
	if d.budget == 0 {
		d.Incomplete = true
		d.Fail(n.Where(), "aliases make the file too large: use fewer, or write their values out")
	}
	if d.budget <= 0 {
		n.yaml = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: node.Line, Column: node.Column}
	} else if node.Kind == yaml.AliasNode {
		n.yaml = node.Alias
	}
	return n
}

// pair is a key of a mapping and its value.
type pair struct {
	name  string
	key   Node
	value *yaml.Node
}

// pairs returns the keys of a mapping in the order of the file, each once. A missing value is an
// empty mapping.
func (n Node) pairs(merges int) []pair {
	if n.Empty() {
		return nil
	}
	if !n.IsMapping() {
		n.Failf("must be a mapping of keys to values, not %s", n.Describe())
		return nil
	}
	pairs := make([]pair, 0, n.Size()/2)
	lines := make(map[string]int, n.Size()/2)
	var merge []*yaml.Node
	for i := 0; i+1 < n.Size(); i += 2 {
		key, value := n.yaml.Content[i], n.yaml.Content[i+1]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			at := Node{n.Decoder, key, n.path}
			at.Failf("a key must be text, not %s", at.Describe())
			continue
		}
		if key.Tag == "!!merge" {
			merge = append(merge, value)
			continue
		}
		at := Node{n.Decoder, key, Join(n.path, key.Value)}
		if first, ok := lines[key.Value]; ok {
			text := fmt.Sprintf("the key %q is given twice", key.Value)
			if n.hidden[key] {
				at.path, text = n.path, "has a key twice"
			}
			at.Failf("%s; it stands at line %d already: remove one", text, first)
			continue
		}
		lines[key.Value] = key.Line
		pairs = append(pairs, pair{key.Value, at, value})
	}
	for _, value := range merge {
		pairs = n.merge(pairs, lines, n.spend(value, n.path), merges-1)
	}
	return pairs
}

// merge adds the pairs of the mappings that a merge key names, except those whose key is there
// already. Their path is that of the mapping with the merge key.
func (n Node) merge(pairs []pair, have map[string]int, from Node, merges int) []pair {
	mappings := []*yaml.Node{from.yaml}
	if from.IsList() {
		mappings = from.yaml.Content
	}
	for _, m := range mappings {
		if merges == 0 {
			from.Failf("mappings are merged in a circle, or more than %d deep: write the keys out in place of <<", maxMerges-1)
			return pairs
		}
		for _, p := range n.spend(m, n.path).pairs(merges) {
			if _, ok := have[p.name]; !ok {
				have[p.name] = p.key.yaml.Line
				pairs = append(pairs, p)
			}
		}
	}
	return pairs
}
