package config

import (
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// callLimit is a limit of a limitador file.
type callLimit struct {
	namespace string
	spec      descriptor.CallLimitSpec
	at        yamlcfg.Place
}

func (l *callLimit) schema() yamlcfg.Schema {
	s, most := &l.spec, int64(-1)
	const longest = 366 * day / time.Second
	return yamlcfg.Object{Title: "limit", Needs: []string{"namespace", "max_value", "seconds"}, Missing: "needs namespace, max_value and seconds", Keys: []yamlcfg.Key{
		key("namespace", "domain of calls", yamlcfg.Name(&l.namespace)),
		key("max_value", "hits in so many seconds; 0 denies everything", yamlcfg.Integer(&most, 0, limiter.MaxTokens)),
		key("seconds", "time in which an empty limit is full again", yamlcfg.Integer(&s.Seconds, 1, int64(longest))),
		key("name", "name in answers and metrics", orNothing{yamlcfg.Text(&s.Name)}),
		key("id", "stands in metrics where there is no name", orNothing{yamlcfg.Literal(&s.ID)}),
		key("conditions", "in CEL; all must be true", expressions(&s.Conditions)),
		key("variables", "in CEL; each combination of values has its bucket. A call without one of the values is not limited", expressions(&s.Variables)),
	}}.Then(func(n yamlcfg.Node, _ bool) {
		s.Path, s.MaxValue, s.Seconds, l.at = n.Path(), max(most, 0), max(s.Seconds, 1), n.Where() // one mistake, one error
	})
}

// isLimitFile reports whether a file is a list of limits.
func isLimitFile(n yamlcfg.Node) bool {
	if !n.IsList() {
		return false
	}
	limits := true
	n.Items(func(item yamlcfg.Node) { limits = limits && item.Has("namespace", "max_value") })
	return limits
}

// limitFile is the list of a limitador file.
func limitFile(out *[]callLimit) yamlcfg.Schema {
	return yamlcfg.List[callLimit]{Out: out, Item: (*callLimit).schema}
}

// expressions is a list of texts, which may be missing.
func expressions(out *[]string) yamlcfg.Schema {
	return orNothing{yamlcfg.List[string]{Out: out, Item: yamlcfg.Name}}
}

// callLimitsOf adds the domains of the limits of a limitador file.
func callLimitsOf(limits []callLimit, domains []domain) []domain {
	for i := range limits {
		l := &limits[i]
		at := slices.IndexFunc(domains, func(d domain) bool { return d.spec.Domain == l.namespace })
		if at < 0 {
			at = len(domains)
			domains = append(domains, domain{spec: descriptor.DomainSpec{Path: l.spec.Path, Domain: l.namespace}, at: l.at, says: true})
		}
		domains[at].spec.Limits = append(domains[at].spec.Limits, l.spec)
	}
	return domains
}
