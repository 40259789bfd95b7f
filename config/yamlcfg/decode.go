package yamlcfg

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

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
	scope  string // put before the paths of an included file, so that paths are unique
	budget int    // values left

	hidden map[*yaml.Node]bool // values whose text no problem repeats, see Confidential
}

// NewDecoder returns the decoder of a file, which adds to a report.
func NewDecoder(r *Report, file, scope string) *Decoder {
	r.places[scope] = Place{File: file}
	return &Decoder{Report: r, file: file, scope: scope, hidden: make(map[*yaml.Node]bool)}
}

// Parse reads the one document of a file. It returns false when there is nothing to decode: the
// file is empty, or the mistake is reported.
func (d *Decoder) Parse(data []byte) (Node, bool) {
	d.budget = len(data) + aliasBudget
	dec := yaml.NewDecoder(bytes.NewReader(data))
	doc, ok := d.document(dec, data)
	if !ok {
		return Node{}, false
	}
	before := d.Failures()
	if second, more := d.document(dec, data); more {
		d.Fail(Place{File: d.file, Line: second.Line, column: second.Column}, "a second document begins here; a file is one document: remove the line \"---\"")
	}
	if d.Failures() > before {
		return Node{}, false
	}
	return d.value(doc.Content[0], ""), true
}

// Documents reads a file that is no configuration as strictly as one: it reports every mistake with
// its line and path, and each unknown key with the closest known one. It calls read for each YAML
// document that is not empty. The problems are sorted; none = the file is valid.
func Documents(file string, data []byte, read func(Node)) Problems {
	d := NewDecoder(NewReport(), file, "")
	d.budget = len(data) + aliasBudget
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for doc, ok := d.document(dec, data); ok; doc, ok = d.document(dec, data) {
		if n := d.value(doc.Content[0], ""); !n.Empty() {
			read(n)
		}
	}
	return d.All()
}

var (
	yamlError = regexp.MustCompile(`(?s)^yaml: (?:line (\d+): )?(.*)$`)
	// The errors of the parser, unlike those of the scanner, name the line before the malformed
	// mapping or list.
	yamlParser = regexp.MustCompile(`^did not find expected (?:key|node content|<document start>|'-' indicator|',' or)`)
	// The one error that repeats text of the file, which may be a secret.
	yamlAnchor = regexp.MustCompile(`(?s)^unknown anchor '(.*)' referenced$`)
)

// document reads the next document of a file. It returns false at the end of the file, or when the
// mistake is reported.
func (d *Decoder) document(dec *yaml.Decoder, data []byte) (doc *yaml.Node, ok bool) {
	doc = new(yaml.Node)
	err := dec.Decode(doc)
	if err == nil || errors.Is(err, io.EOF) {
		return doc, err == nil
	}
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
	return nil, false
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
