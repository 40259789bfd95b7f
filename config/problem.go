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

// place is a place in a file.
type place struct {
	file         string
	line, column int
	path         string
}

// report collects the problems of one load, and remembers the place of each path.
type report struct {
	errors   Problems
	warnings Problems
	dropped  int              // errors beyond maxProblems
	places   map[string]place // by path; paths of included files begin with "name:"

	unsound    map[string]bool // by path: rules and descriptors that were decoded with a mistake
	incomplete bool            // a file was not read to its end: mistakes that follow from this are not reported
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

// find returns the place of a path, or of the nearest path above it that is in the file. So a
// missing key is reported where it would belong.
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

// all returns the errors, sorted. The last one counts those beyond maxProblems.
func (r *report) all() Problems {
	r.errors.sort()
	if r.dropped > 0 {
		r.errors = append(r.errors, Problem{File: r.places[""].file, Text: fmt.Sprintf("and %d more problems", r.dropped)})
	}
	return r.errors
}
