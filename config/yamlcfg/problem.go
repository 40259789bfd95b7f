package yamlcfg

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Bounds of the problems that one load reports.
const (
	MaxProblems = 1000 // problems
	maxPath     = 256  // path of a problem, in bytes
	MaxText     = 1024 // text of a problem, in bytes
)

// Problem is a mistake in a file, or a legal setting that is probably one.
type Problem struct {
	File    string // the name that was given
	Line    int    // from 1; 0 = the whole file
	Column  int    // from 1, in characters; 0 = unknown
	Path    string // "domains[0].rules[3].entity"; "" = the whole file
	Text    string // the mistake, and how to correct it
	Warning bool   // the configuration can be used in spite of it
}

// String returns the problem in one line, "file:line: path: text".
func (p Problem) String() string {
	text := p.Text
	if p.Path != "" {
		text = p.Path + ": " + text
	}
	if p.Warning {
		text = "warning: " + text
	}
	if p.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", p.File, p.Line, text)
	}
	return p.File + ": " + text
}

// Problems are sorted by file and line. As an error they are one line each.
type Problems []Problem //nolint:errname // a list of problems first, and also warnings that are no error

// Error returns the problems, one line each.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Sort sorts the problems by file, line and path.
func (ps Problems) Sort() {
	slices.SortFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Text, b.Text))
	})
}

// Place is a place in a file.
type Place struct {
	File         string
	Line, column int
	Path         string
}

// Report collects the problems of one load, and remembers the place of each path.
type Report struct {
	Errors   Problems
	warnings Problems
	dropped  int              // errors beyond maxProblems
	places   map[string]Place // by path; paths of included files begin with "name:"

	Unsound    map[string]bool // by path: rules and descriptors that were decoded with a mistake
	Incomplete bool            // a file was not read to its end: mistakes that follow from this are not reported
}

// NewReport returns a report without problems.
func NewReport() *Report {
	return &Report{places: make(map[string]Place), Unsound: make(map[string]bool)}
}

// Fail reports an error, up to MaxProblems of them.
func (r *Report) Fail(at Place, format string, args ...any) {
	if len(r.Errors) >= MaxProblems {
		r.dropped++
		return
	}
	r.Errors = append(r.Errors, at.Problem(fmt.Sprintf(format, args...)))
}

// Warn reports a warning.
func (r *Report) Warn(at Place, format string, args ...any) {
	if len(r.warnings) >= MaxProblems {
		return
	}
	p := at.Problem(fmt.Sprintf(format, args...))
	p.Warning = true
	r.warnings = append(r.warnings, p)
}

// Problem returns a problem at the place.
func (at Place) Problem(text string) Problem {
	return Problem{File: at.File, Line: at.Line, Column: at.column, Path: Shorten(at.Path, maxPath), Text: Shorten(text, MaxText)}
}

// Place returns the place of a path that the files have.
func (r *Report) Place(path string) (Place, bool) {
	at, ok := r.places[path]
	return at, ok
}

// Find returns the place of a path, or of the nearest path above it that is in the file. So a
// missing key is reported where it would belong.
func (r *Report) Find(path string) Place {
	if _, ok := r.places[path]; !ok { // the keys of an included file's only domain stand at its root
		path = strings.Replace(path, ":.", ":", 1)
	}
	for p := path; ; {
		if at, ok := r.places[p]; ok {
			if at.Path == "" {
				at.Path = strings.TrimPrefix(path[len(p):], ".")
				return at
			}
			at.Path += path[len(p):]
			return at
		}
		i := strings.LastIndexAny(p, ".[")
		if i < 0 {
			break
		}
		p = p[:i]
	}
	at := r.places[""]
	at.Path = path
	return at
}

// Sound reports whether there is no error.
func (r *Report) Sound() bool { return len(r.Errors) == 0 }

// Failures grows with every error.
func (r *Report) Failures() int { return len(r.Errors) + r.dropped }

// Warned returns the warnings, sorted.
func (r *Report) Warned() Problems {
	r.warnings.Sort()
	return r.warnings
}

// All returns the errors, sorted. The last one counts those beyond maxProblems.
func (r *Report) All() Problems {
	r.Errors.Sort()
	if r.dropped > 0 {
		r.Errors = append(r.Errors, Problem{File: r.places[""].File, Text: fmt.Sprintf("and %d more problems", r.dropped)})
	}
	return r.Errors
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
