package yamlcfg

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// Documents reads a file that is no configuration as strictly as one: it reports every mistake with
// its line and path, and each unknown key with the closest known one. It calls read for each YAML
// document that is not empty. The problems are sorted; none = the file is valid.
func Documents(file string, data []byte, read func(Node)) Problems {
	d := NewDecoder(NewReport(), file, "")
	d.budget = len(data) + aliasBudget
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var doc yaml.Node
		err := dec.Decode(&doc)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				d.syntax(data, err)
			}
			return d.All()
		}
		if n := (Node{d, d.value(doc.Content[0], "")}); !n.Empty() {
			read(n)
		}
	}
}

// Node is a value in a document. Its methods report mistakes of the value.
type Node struct {
	d *Decoder
	v Value
}

// Field is a known key of a mapping, and the reader of its value.
type Field struct {
	Name string
	Read func(Node)
}

// Line is the line of the value, from 1.
func (n Node) Line() int { return n.v.node.Line }

// Failf reports a mistake of the value.
func (n Node) Failf(format string, args ...any) { n.d.Failf(n.v, format, args...) }

// Empty reports whether there is no value, or null.
func (n Node) Empty() bool { return isNull(n.v.node) }

// IsList reports whether the value is a list.
func (n Node) IsList() bool { return n.v.node.Kind == yaml.SequenceNode }

// IsScalar reports whether the value is text, a number or the like.
func (n Node) IsScalar() bool { return n.v.node.Kind == yaml.ScalarNode && !n.Empty() }

// Has reports whether the value is a mapping with one of the keys.
func (n Node) Has(keys ...string) bool { return n.v.Has(keys...) }

// Fields reads a mapping of known keys. Other keys are mistakes.
func (n Node) Fields(fields ...Field) {
	o := Object{Keys: make([]Key, len(fields))}
	for i, f := range fields {
		o.Keys[i] = Key{Name: f.Name, Schema: n.reader(f.Read)}
	}
	o.Decode(n.d, n.v)
}

func (Node) reader(read func(Node)) Schema {
	return Scalar{Read: func(d *Decoder, v Value) { read(Node{d, v}) }}
}

// Entries reads a mapping whose keys are names that the user chooses, in the order of the file.
// thing is the kind of thing that the keys name, such as "an entity".
func (n Node) Entries(thing string, each func(name string, value Node)) {
	pairs, _ := n.d.mapping(n.v)
	for _, p := range pairs {
		if p.name == "" {
			n.d.Failf(p.key, "the name of %s must not be empty", thing)
			continue
		}
		each(p.name, Node{n.d, n.d.value(p.node, p.key.Path)})
	}
}

// Items reads a list.
func (n Node) Items(each func(Node)) {
	items, _ := n.d.Sequence(n.v)
	for _, item := range items {
		each(Node{n.d, item})
	}
}

// Value reads any value, in the types that encoding/json has for the same value.
func (n Node) Value(out *any) {
	if err := n.v.node.Decode(out); err != nil {
		n.Failf("%s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
}

// Text reads text, which may be empty.
func (n Node) Text(out *string) { Text(out).Decode(n.d, n.v) }

// Name reads text that is not empty.
func (n Node) Name(out *string) { Name(out).Decode(n.d, n.v) }

// OneOf reads a word that must be one of words.
func (n Node) OneOf(out *string, words ...string) {
	all := make([]Word[string], len(words))
	for i, w := range words {
		all[i] = Word[string]{w, w}
	}
	OneOf(out, all...).Decode(n.d, n.v)
}

// Bool reads true or false.
func (n Node) Bool(out *bool) { Bool(out).Decode(n.d, n.v) }

// Integer reads a whole number within bounds.
func (n Node) Integer(out *int64, least, most int64) { Integer(out, least, most).Decode(n.d, n.v) }

// Duration reads a duration within bounds, such as 1h30m.
func (n Node) Duration(out *time.Duration, least, most time.Duration) {
	Duration(out, least, most).Decode(n.d, n.v)
}

// Read reads a value of a schema.
func (n Node) Read(s Schema) { s.Decode(n.d, n.v) }

// At is the place of the value, "file:line", for a message about another place.
func (n Node) At() string {
	return n.d.file + ":" + strconv.Itoa(n.Line())
}
