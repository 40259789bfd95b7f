package config

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

// otherForms are placeholders as other programs have them: {{user}} and ${user}.
var otherForms = regexp.MustCompile(`\{\{\s*([^{}]+?)\s*\}\}|\$\{([^{}]+)\}`)

// forms warns of templates and patterns in the form of other programs. They are legal text, so that all requests share one
// bucket, or none matches.
type forms struct {
	*yamlcfg.Report

	warned map[string]bool // paths: a rule with prices is one for each of them
}

// warn warns of the templates of takes and of the patterns of rules.
func (w forms) warn(takes []taking, specs []descriptor.DomainSpec) {
	for _, t := range takes {
		w.form(t, t.Path+".entity", t.Entity)
		w.form(t, t.Path+".resource", t.Resource)
		for i, parent := range t.Parents {
			path := t.Path + ".parent"
			if len(t.Parents) > 1 {
				path += "[" + strconv.Itoa(i) + "]"
			}
			w.form(t, path, parent)
		}
	}
	for i := range specs {
		for _, r := range specs[i].Rules {
			for _, m := range r.Match {
				if m.Regex == "" && slices.ContainsFunc(append([]string{m.Value}, m.Values...), func(s string) bool { return strings.HasPrefix(s, "^") }) {
					w.once(m.Path, "is text that begins with ^: a regular expression is written {regex: ...}, and is anchored at both ends")
				}
			}
		}
	}
}

// form warns of a template with a key of its rule in the form of another program.
func (w forms) form(t taking, path, template string) {
	for _, m := range otherForms.FindAllStringSubmatch(template, -1) {
		key := m[1] + m[2]
		if !slices.ContainsFunc(t.rule.Match, func(of descriptor.MatchSpec) bool { return of.Key == key }) {
			continue
		}
		if m[1] != "" {
			w.once(path, "has the text {%[1]s}, as {{ and }} are braces: write {%[1]s} for the value of %[1]s", key)
		} else {
			w.once(path, "has the character $ before the value of %[1]s: write {%[1]s} for the value alone", key)
		}
	}
}

// once warns of a place once.
func (w forms) once(path, format string, args ...any) {
	if !w.warned[path] {
		w.warned[path] = true
		w.Warn(w.Find(path), format, args...)
	}
}
