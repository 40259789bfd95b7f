package descriptor

import (
	"regexp"
	"slices"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// OwnLimits are the limits of a rule for the buckets of one of its takes.
type OwnLimits struct {
	Domain, Rule     string
	Entity, Resource string // templates, such as key/{key}
	Limits           *limiter.Limits
	Shadow           bool // the rule is in shadow mode
}

// OwnLimits returns the limits of the rules of a namespace, in the order of the file. Limits of plans, and of
// files of other programs, are not among them.
func (r *Rules) OwnLimits(namespace string) []OwnLimits {
	var all []OwnLimits
	for _, d := range r.Domains() {
		if d.namespace != namespace || d.OfFile() || d.OfLimits() {
			continue
		}
		for _, rule := range d.rules {
			for i := range rule.takes {
				t := &rule.takes[i]
				if t.own.limits.Len() == 0 || strings.HasPrefix(t.own.of, planPrefix) {
					continue
				}
				all = append(all, OwnLimits{d.name, rule.name, t.entity.String(), t.resource.String(), t.own.limits, rule.shadow})
			}
		}
	}
	return all
}

// Takes reports whether a rule of a namespace may take from an entity, and whether one may take from it for a
// resource. All may, if the namespace has no rule here or limits of other programs.
func (r *Rules) Takes(namespace, entity, resource string) (fromEntity, forResource bool) {
	ruled := false
	for _, d := range r.Domains() {
		if d.namespace != namespace {
			continue
		}
		if d.OfFile() || d.OfLimits() {
			return true, true
		}
		for _, rule := range d.rules {
			for i := range rule.takes {
				ruled = true
				t := &rule.takes[i]
				if slices.ContainsFunc(append([]template{t.entity}, t.parents...), func(of template) bool { return of.covers(entity) }) {
					fromEntity = true
					forResource = forResource || t.resource.covers(resource)
				}
			}
		}
	}
	return fromEntity || !ruled, forResource || !ruled
}

// EntityPrefixes returns the text before the first placeholder of the entities of a namespace's rules, each
// once: "key/" for key/{key}. Rules that name entities by a placeholder alone have none.
func (r *Rules) EntityPrefixes(namespace string) []string {
	var all []string
	seen := make(map[string]bool)
	for _, d := range r.Domains() {
		if d.namespace != namespace {
			continue
		}
		for _, rule := range d.rules {
			for i := range rule.takes {
				prefix, _, found := strings.Cut(rule.takes[i].entity.String(), "{")
				if found && prefix != "" && !seen[prefix] {
					seen[prefix] = true
					all = append(all, prefix)
				}
			}
		}
	}
	return all
}

// Covers reports whether the text of a template, such as key/{key}, may stand for a name.
func Covers(text, name string) bool {
	t, err := parseTemplate(text)
	return err == nil && t.covers(name)
}

// covers reports whether the template may stand for a name.
func (t *template) covers(name string) bool {
	var pattern strings.Builder
	for _, p := range t.parts {
		if p.capture == literal {
			pattern.WriteString(regexp.QuoteMeta(p.text))
		} else {
			pattern.WriteString(`.*`)
		}
	}
	return regexp.MustCompile(`^(?s:` + pattern.String() + `)$`).MatchString(name)
}

// String returns the text of the template.
func (t *template) String() string {
	var text strings.Builder
	for _, p := range t.parts {
		if p.capture == literal {
			text.WriteString(p.text)
		} else {
			text.WriteString("{" + p.text + "}")
		}
	}
	return text.String()
}
