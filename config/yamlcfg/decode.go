package yamlcfg

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// aliasBudget is how many values a file may have beyond one for each of its bytes. Only aliases of
// aliases make more.
const aliasBudget = 100_000

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

// FromJSON returns JSON text as YAML that has the same values. Characters that YAML refuses, or takes for
// the end of a line, are written as \u007f.
func FromJSON(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for _, r := range string(text) {
		if r >= 0x7f && r < 0xa0 || r == 0xfeff || r == 0xfffe || r == 0xffff {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}

var (
	yamlError = regexp.MustCompile(`(?s)^yaml: (?:line (\d+): )?(.*)$`)
	// The errors of the parser, unlike those of the scanner, name the line before the malformed
	// mapping or list.
	yamlParser = regexp.MustCompile(`^did not find expected (?:key|node content|<document start>|'-' indicator|',' or)`)
	// bareTemplate is text with a placeholder, such as user/{user}, which ends early between braces.
	bareTemplate = regexp.MustCompile(`[\w/.-]\{\w+\}`)
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
	d.Fail(at, "not valid YAML%s: %s%s", where, text, remedy(text, lineOf(data, at.Line)))
	return nil, false
}

// lineOf returns a line of a file, counted from 1.
func lineOf(data []byte, n int) []byte {
	for i := 1; i < n; i++ {
		_, data, _ = bytes.Cut(data, []byte("\n"))
	}
	line, _, _ := bytes.Cut(data, []byte("\n"))
	return line
}

// remedy is the right form of a line that the scanner of YAML refuses; "" = not known.
func remedy(text string, line []byte) string {
	switch {
	case strings.HasPrefix(text, "found character that cannot start any token") && bytes.HasPrefix(bytes.TrimLeft(line, " "), []byte("\t")):
		return ": the line begins with a tab, and YAML indents by spaces"
	case strings.HasPrefix(text, "did not find expected alphabetic or numeric character"):
		return ": text that begins with * or & needs quotes, as in \"*\""
	case strings.HasPrefix(text, "did not find expected ',' or") && bareTemplate.Match(line):
		return ": text with braces needs quotes here, as in \"user/{user}\""
	}
	return ""
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
