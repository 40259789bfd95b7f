package config

import (
	"iter"
	"regexp"
	"slices"
	"strings"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/money"
)

// otherForms are placeholders as other programs have them: {{user}} and ${user}.
var otherForms = regexp.MustCompile(`\{\{\s*([^{}]+?)\s*\}\}|\$\{([^{}]+)\}`)

// forms warns of templates and patterns in the form of other programs, and of numbers that are probably dollars. They are
// legal, so that all requests share one bucket, or none matches.
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
			w.form(t, t.parentPath(i), parent)
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

// cents warns of limits of money that hold less than a cent. Their number is probably of dollars, and a token is a millionth of
// one.
func (w forms) cents(all iter.Seq2[string, limiter.Limit]) {
	for path, of := range all {
		if money.Is(of.Name) && !of.Unlimited && 0 < of.Capacity && of.Capacity < money.Cent {
			w.once(yamlcfg.Join(path, of.Name), "holds %s: a number without USD counts millionths of a dollar; write %s USD for dollars", money.Amount(of.Name, of.Capacity), money.Amount("", of.Capacity))
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
