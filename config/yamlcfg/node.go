package yamlcfg

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

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

// Field is a known key of a mapping, and the reader of its value.
type Field struct {
	Name string
	Read func(Node)
}

// Fields reads a mapping of known keys. Other keys are mistakes.
func (n Node) Fields(fields ...Field) {
	o := Object{Keys: make([]Key, len(fields))}
	for i, f := range fields {
		o.Keys[i] = Key{Name: f.Name, Schema: Scalar{Read: f.Read}}
	}
	o.Decode(n)
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
