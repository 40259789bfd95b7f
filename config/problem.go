package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	maxProblems = 1000 // bounds how many problems one load reports
	maxPath     = 256  // bounds the path of a problem, in bytes
	maxText     = 1024 // bounds the text of a problem, in bytes
)

// Problem is one mistake, or something worth a second look, in a file.
type Problem struct {
	File    string // as it was named
	Line    int    // from 1; 0 = the file as a whole
	Column  int    // from 1, in characters; 0 = unknown
	Path    string // "domains[0].rules[3].entity"; "" = the file as a whole
	Text    string // what is wrong, and what would be right
	Warning bool   // the configuration can be used
}

// String returns the problem in one line, "file:line: path: text".
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		b.WriteByte(':')
		b.WriteString(strconv.Itoa(p.Line))
	}
	b.WriteString(": ")
	if p.Warning {
		b.WriteString("warning: ")
	}
	if p.Path != "" {
		b.WriteString(p.Path)
		b.WriteString(": ")
	}
	b.WriteString(p.Text)
	return b.String()
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

func (ps Problems) sort() {
	slices.SortFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Text, b.Text))
	})
}

// place is where something stands.
type place struct {
	file         string
	line, column int
	path         string
}

// report collects the problems of one load, and remembers where each path stands.
type report struct {
	errors   Problems
	warnings Problems
	dropped  int              // errors beyond maxProblems
	places   map[string]place // by path, which for included files starts with "name:"

	unsound    map[string]bool // by path: rules and descriptors that were decoded with a mistake
	incomplete bool            // a file was not read to its end; what follows of that is no mistake
}

func newReport() *report {
	return &report{places: make(map[string]place), unsound: make(map[string]bool)}
}

func (r *report) fail(at place, format string, args ...any) {
	if len(r.errors) >= maxProblems {
		r.dropped++
		return
	}
	r.errors = append(r.errors, at.problem(fmt.Sprintf(format, args...)))
}

func (r *report) warn(at place, format string, args ...any) {
	if len(r.warnings) >= maxProblems {
		return
	}
	p := at.problem(fmt.Sprintf(format, args...))
	p.Warning = true
	r.warnings = append(r.warnings, p)
}

func (at place) problem(text string) Problem {
	return Problem{File: at.file, Line: at.line, Column: at.column, Path: shorten(at.path, maxPath), Text: shorten(text, maxText)}
}

// find returns the place of a path, or of the nearest thing above it that stands
// in the file: a key that is missing is reported where it would belong.
func (r *report) find(path string) place {
	if _, ok := r.places[path]; !ok { // the keys of an included file's only domain stand at its root
		path = strings.Replace(path, ":.", ":", 1)
	}
	for p := path; ; {
		if at, ok := r.places[p]; ok {
			if at.path == "" {
				at.path = strings.TrimPrefix(path[len(p):], ".")
				return at
			}
			at.path += path[len(p):]
			return at
		}
		i := strings.LastIndexAny(p, ".[")
		if i < 0 {
			break
		}
		p = p[:i]
	}
	at := r.places[""]
	at.path = path
	return at
}

// all returns the errors, sorted, with a last line when there were too many.
func (r *report) all() Problems {
	r.errors.sort()
	if r.dropped > 0 {
		r.errors = append(r.errors, Problem{File: r.places[""].file, Text: fmt.Sprintf("and %d more problems", r.dropped)})
	}
	return r.errors
}
