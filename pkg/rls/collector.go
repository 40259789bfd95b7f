package rls

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// ruleCollector exposes the series of the rules in force.
type ruleCollector struct {
	now     func() time.Time
	current atomic.Pointer[series]

	decisions, denials, charges, settlements, tokens, utilization *prometheus.Desc
}

// series are those of all rules of a configuration.
type series struct {
	matched   []*ruleSeries          // by Rule.Index
	unmatched map[string]*ruleSeries // by domain
	unknown   *ruleSeries            // descriptors of unknown domains
	gone      [results]int64         // decisions of rules that were removed from the configuration
	denied    map[string]int64       // denials of such rules, by reason
}

func newRuleCollector(now func() time.Time) ruleCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return ruleCollector{
		now:         now,
		decisions:   desc("ratelimit_decisions_total", "Descriptors decided, by result.", "domain", "rule", "result"),
		denials:     desc("ratelimit_denials_total", "Descriptors denied, by limit and reason.", "domain", "rule", "limit", "reason"),
		charges:     desc("ratelimit_charges_total", "Descriptors that charged or refunded.", "domain", "rule", "kind", "result"),
		settlements: desc("ratelimit_settlements_total", "Descriptors that settle a reservation.", "domain", "rule", "result"),
		tokens:      desc("ratelimit_tokens_total", "Tokens of the rule's own entities, not of their ancestors.", "domain", "rule", "limit", "kind"),
		utilization: desc("ratelimit_highest_utilization_ratio", "Greatest share of its capacity that a bucket had in use, in the last 30 to 60 seconds; above 1 is debt.", "domain", "rule", "limit"),
	}
}

// replace replaces the series by those of the new rules. Counters of rules and limits that stay go
// on.
func (k *ruleCollector) replace(rules *descriptor.Rules) *series {
	before := k.current.Load()
	if before == nil {
		before = new(series)
	}
	type name struct{ domain, rule string }
	known := make(map[name]*ruleSeries, len(before.matched))
	for _, s := range before.matched {
		known[name{s.domain, s.rule}] = s
	}
	next := &series{
		matched: make([]*ruleSeries, rules.Len()), unmatched: make(map[string]*ruleSeries),
		unknown: unmatchedSeries("", before.unknown), gone: before.gone, denied: make(map[string]int64),
	}
	maps.Copy(next.denied, before.denied)
	for _, d := range rules.Domains() {
		next.unmatched[d.Name()] = unmatchedSeries(d.Name(), before.unmatched[d.Name()])
		for _, r := range d.Rules() {
			next.matched[r.Index()] = seriesOf(r, known[name{d.Name(), r.Name()}])
			delete(known, name{d.Name(), r.Name()})
		}
	}
	for _, s := range known {
		next.leave(s)
	}
	for domain, s := range before.unmatched {
		if next.unmatched[domain] == nil {
			next.leave(s)
		}
	}
	k.current.Store(next)
	return next
}

// leave keeps the numbers of a rule that was removed from the configuration.
func (all *series) leave(s *ruleSeries) {
	s.addTo(&all.gone)
	s.addDenials(all.denied)
}

// each calls f for the series of every rule.
func (k *ruleCollector) each(f func(*ruleSeries)) {
	all := k.current.Load()
	for _, s := range all.matched {
		f(s)
	}
	for _, s := range all.unmatched {
		f(s)
	}
	f(all.unknown)
}

// decided returns the number of decided descriptors, by result. It includes those of earlier rules.
func (k *ruleCollector) decided() map[string]int64 {
	sums := k.current.Load().gone
	k.each(func(s *ruleSeries) { s.addTo(&sums) })
	all := make(map[string]int64, results)
	for result, name := range resultNames() {
		all[name] = sums[result]
	}
	return all
}

// deniedBy returns the number of denied descriptors, by reason. It includes those of earlier rules.
func (k *ruleCollector) deniedBy() map[string]int64 {
	sums := make(map[string]int64)
	maps.Copy(sums, k.current.Load().denied)
	k.each(func(s *ruleSeries) { s.addDenials(sums) })
	return sums
}

// Describe implements prometheus.Collector.
func (k *ruleCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{k.decisions, k.denials, k.charges, k.settlements, k.tokens, k.utilization} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (k *ruleCollector) Collect(out chan<- prometheus.Metric) {
	now := k.now()
	k.each(func(s *ruleSeries) {
		k.collectRule(out, s)
		for _, l := range s.limits {
			for kind, name := range tokenKindNames() {
				out <- constant(k.tokens, prometheus.CounterValue, float64(l.tokens[kind].Load())/limiter.Milli, s.domain, s.rule, l.limit, name)
			}
			out <- constant(k.utilization, prometheus.GaugeValue, float64(l.peak.at(now))/1000, s.domain, s.rule, l.limit)
		}
	})
}

func (k *ruleCollector) collectRule(out chan<- prometheus.Metric, s *ruleSeries) {
	count := func(d *prometheus.Desc, n int64, labels ...string) {
		out <- constant(d, prometheus.CounterValue, float64(n), append([]string{s.domain, s.rule}, labels...)...)
	}
	for result, name := range resultNames() {
		if n := s.results[result].Load(); n > 0 || slices.Contains(s.expected, result) {
			count(k.decisions, n, name)
		}
	}
	s.denials.each(func(key denialKey, n int64) {
		if key.limit == "" || s.limit(key.limit) != nil {
			count(k.denials, n, key.limit, key.reason)
		}
	})
	s.charges.each(func(key chargeKey, n int64) { count(k.charges, n, key.kind, key.result) })
	s.settlements.each(func(result string, n int64) { count(k.settlements, n, result) })
}

// constant returns a metric with the current value.
func constant(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) prometheus.Metric {
	m, err := prometheus.NewConstMetric(d, kind, value, labels...)
	if err != nil { // a name in the configuration is not UTF-8
		return prometheus.NewInvalidMetric(d, err)
	}
	return m
}
