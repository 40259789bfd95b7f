package yamlcfg

import (
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
)

// Confidential is a part of the file that may hold secrets, such as keys and tokens, on purpose or
// by mistake. No problem repeats a value or an unknown key of it.
type Confidential struct{ Schema }

// Decode hides the value and reads it.
func (c Confidential) Decode(d *Decoder, v Value) {
	d.Hide(v)
	c.Schema.Decode(d, v)
}

// longestName is how many bytes of a name that replaces a secret are repeated. Secrets are longer.
const longestName = 24

// Hide keeps the text of a value, and of all values below it, out of every problem.
func (d *Decoder) Hide(v Value) { d.hideNode(v.node) }

func (d *Decoder) hideNode(n *yaml.Node) {
	if n == nil || d.hidden[n] {
		return
	}
	d.hidden[n] = true
	d.hideNode(n.Alias)
	for _, below := range n.Content {
		d.hideNode(below)
	}
}

// Describe names the kind of a node, for "must be …, not …".
func (d *Decoder) Describe(v Value) string {
	n := v.node
	text, number := fmt.Sprintf("the text %q", Shorten(n.Value, MaxQuoted)), Shorten(n.Value, MaxQuoted)
	if d.hidden[n] {
		text, number = "text", "a value"
	}
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case isNull(n):
		return "nothing"
	case n.Tag == "!!str":
		return text
	case n.Tag != "!!int" && n.Tag != "!!float":
		return number
	case d.hidden[n]:
		return "a number"
	default:
		return "the number " + number
	}
}

// unknown reports a key of a mapping that is none of the known ones.
func (d *Decoder) unknown(p pair, in Value, known []string) {
	if d.hidden[p.key.node] {
		d.Failf(Value{node: p.key.node, Path: in.Path}, "has an unknown key (known here: %s)", strings.Join(known, ", "))
		return
	}
	d.Failf(p.key, "unknown key %q%s (known here: %s)", p.name, DidYouMean(p.name, known), strings.Join(known, ", "))
}

// twice reports a key of a mapping that an earlier line has already.
func (d *Decoder) twice(key, in Value, first int) {
	if d.hidden[key.node] {
		d.Failf(Value{node: key.node, Path: in.Path}, "has a key twice; it stands at line %d already: remove one", first)
		return
	}
	d.Failf(key, "the key %q is given twice; it stands at line %d already: remove one", key.node.Value, first)
}
