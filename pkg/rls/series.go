package rls

import (
	"sync"
	"sync/atomic"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Results of a descriptor.
const (
	resultAllowed = iota
	resultFallback
	resultDenied
	resultWithheld
	resultUnlimited
	resultUnmatched
	resultShadowAllowed
	resultShadowDenied
	results // the number of results
)

func resultNames() [results]string {
	return [results]string{"allowed", "fallback", "denied", "withheld", "unlimited", "unmatched", "shadow_allowed", "shadow_denied"}
}

// ruleSeries are the counters of one rule, or with the rule "" those of the descriptors that no
// rule of the domain matches. They are exposed as long as the rule is configured.
type ruleSeries struct {
	*ruleCounters

	expected []int // results that are exposed while they are 0
	limits   []*limitSeries
}

// ruleCounters are the counters of a rule that do not depend on its settings. A reload keeps them.
type ruleCounters struct {
	domain, rule string
	results      [results]atomic.Int64
	denials      tally[denialKey]
	charges      tally[chargeKey]
	settlements  tally[string] // by result
}

type denialKey struct{ limit, reason string }

type chargeKey struct{ kind, result string }

// limitSeries are the counters of one limit that a rule consumes.
type limitSeries struct {
	limit  string
	tokens [tokenKinds]atomic.Int64 // millitokens
	peak   peak
}

// Kinds of tokens.
const (
	tokensTaken = iota
	tokensDenied
	tokensCharged
	tokensRefunded
	tokenKinds // the number of kinds
)

func tokenKindNames() [tokenKinds]string {
	return [tokenKinds]string{"taken", "denied", "charged", "refunded"}
}

// tally is a set of counters by key, which grows with use. Its keys come from the
// configuration and from fixed sets of words.
type tally[K comparable] struct {
	mu  sync.RWMutex
	all map[K]*atomic.Int64
}

// add adds n to the counter of the key. The counter exists from then on, even if n is 0.
func (t *tally[K]) add(key K, n int64) {
	t.mu.RLock()
	c := t.all[key]
	t.mu.RUnlock()
	if c == nil {
		c = t.grow(key)
	}
	c.Add(n)
}

func (t *tally[K]) grow(key K) *atomic.Int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all = make(map[K]*atomic.Int64)
	}
	if t.all[key] == nil {
		t.all[key] = new(atomic.Int64)
	}
	return t.all[key]
}

// each calls f for every counter.
func (t *tally[K]) each(f func(K, int64)) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for key, c := range t.all {
		f(key, c.Load())
	}
}

// seriesOf returns the series of a rule, with the counters that it had before; nil = none.
func seriesOf(r *descriptor.Rule, before *ruleSeries) *ruleSeries {
	s := &ruleSeries{expected: expectedOf(r), limits: make([]*limitSeries, 0, len(r.Limits()))}
	if before != nil {
		s.ruleCounters = before.ruleCounters
	} else {
		s.ruleCounters = &ruleCounters{domain: r.Domain().Name(), rule: r.Name()}
	}
	if r.Settles() {
		s.settlements.add(settledNow, 0)
	}
	if r.Overdraws() && !r.Shadow() {
		s.charges.add(chargeKey{chargeKind(limiter.Charge), bookingDone}, 0)
		s.charges.add(chargeKey{chargeKind(limiter.Refund), bookingDone}, 0)
	}
	if r.Shadow() { // it takes from buckets of its own
		return s
	}
	for _, name := range r.Limits() {
		l := before.limit(name)
		if l == nil {
			l = &limitSeries{limit: name}
		}
		s.limits = append(s.limits, l)
		if !r.Settles() {
			s.denials.add(denialKey{name, limiter.ReasonExhausted.String()}, 0)
		}
	}
	return s
}

// unmatchedSeries returns the series of the descriptors that no rule of a domain matches, with the
// counters that it had before; nil = none. The domain "" is for descriptors of unknown domains.
func unmatchedSeries(domain string, before *ruleSeries) *ruleSeries {
	if before != nil {
		return before
	}
	return &ruleSeries{ruleCounters: &ruleCounters{domain: domain}, expected: []int{resultUnmatched, resultDenied}}
}

// limit returns the series of a limit, nil when there is none; s may be nil.
func (s *ruleSeries) limit(name string) *limitSeries {
	if s == nil {
		return nil
	}
	for _, l := range s.limits {
		if l.limit == name {
			return l
		}
	}
	return nil
}

// addTo adds the results to sums.
func (c *ruleCounters) addTo(sums *[results]int64) {
	for i := range c.results {
		sums[i] += c.results[i].Load()
	}
}

// addDenials adds the denials to sums, by reason. A reason without a denial is left out.
func (c *ruleCounters) addDenials(sums map[string]int64) {
	c.denials.each(func(key denialKey, n int64) {
		if n > 0 {
			sums[key.reason] += n
		}
	})
}

// expectedOf returns the ordinary results for the descriptors of a rule.
func expectedOf(r *descriptor.Rule) []int {
	switch {
	case r.Settles():
		return nil
	case r.Shadow():
		return []int{resultShadowAllowed, resultShadowDenied}
	case r.Unlimited():
		return []int{resultUnlimited}
	case r.Denial() != nil:
		return []int{resultDenied}
	default:
		return []int{resultAllowed, resultFallback, resultDenied, resultWithheld}
	}
}

func (s *ruleSeries) result(result int) { s.results[result].Add(1) }

func (s *ruleSeries) denied(limit, reason string) { s.denials.add(denialKey{limit, reason}, 1) }

func (s *ruleSeries) charge(mode limiter.Mode, result string) {
	s.charges.add(chargeKey{chargeKind(mode), result}, 1)
}

func chargeKind(mode limiter.Mode) string {
	if mode == limiter.Refund {
		return "refund"
	}
	return "charge"
}
