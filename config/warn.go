package config

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/money"
)

// warnings warns of
// - domains without rules.
// - limits that hold less than is consumed.
// - limits in flight, where no rule ends a request.
// - budgets that are consumed by themselves.
// - parents without limits.
// - limits, sets and prices that nothing reaches.
// - long periods that look like budgets.
// - limits of money below a cent.
// - templates and patterns in the form of other programs.
// - headers that are never sent.
// - leases and a directory that are not used.
func (f *file) warnings(r *yamlcfg.Report, specs []descriptor.DomainSpec) {
	w := newWarner(r, f, specs)
	w.ruleless(specs)
	w.unresolved()
	w.room()
	w.amounts()
	w.endless(specs)
	w.uncounted()
	w.parents()
	w.unreached(specs)
	of := forms{r, make(map[string]bool)}
	of.warn(w.takes, specs)
	of.cents(w.limits())
	w.firstPeriod()
	for _, l := range append(f.limits.all(), f.plans...) {
		w.budgets(l.Path, l.Value.limits)
	}
	for _, t := range w.takes {
		w.budgets(t.Path+".limits", t.Limits)
	}
	for i := range specs {
		w.treeBudgets(specs[i].Tree)
	}
	f.unheard(r)
	f.leases(r, specs)
	if s := f.cfg.Store; f.cfg.Budgets.Set.Len() > 0 && s.Type == StoreEmbedded && s.Embedded.Data == "" {
		r.Warn(r.Find("limits"), "have budgets, which are watched with a data directory only (store.embedded.data, or --data), and in a table by ratelimit aggregate")
	}
	if s := f.cfg.Store; s.Type != StoreEmbedded && s.Embedded.Data != "" {
		r.Warn(r.Find("store.embedded.data"), "is not used: the store is %s", s.Type)
	}
	if s := f.cfg.Store; f.cfg.Budgets.Set.Len() > 0 && s.Type == StoreValkey && !s.Valkey.Usage {
		r.Warn(r.Find("limits"), "have budgets, which are not watched with store.valkey.usage: false")
	}
	_, typed := r.Place("store.type")
	for _, kind := range []StoreType{StoreDynamoDB, StoreValkey} {
		if at, ok := r.Place("store." + string(kind)); ok && !typed && f.cfg.Store.Type == StoreEmbedded {
			r.Warn(at, "is used with store.type: %[1]s, or --store %[1]s, only: without them buckets are in the program itself", kind)
		}
	}
}

// ruleless warns of domains that limit nothing.
func (w *warner) ruleless(specs []descriptor.DomainSpec) {
	for i := range specs {
		if s := &specs[i]; len(s.Rules) == 0 && len(s.Tree) == 0 && len(s.Limits) == 0 && !s.DenyUnknown {
			w.Warn(w.Find(s.Path), "the domain %s has no rules: nothing in it is limited", s.Domain)
		}
	}
}

// endless warns of a limit in flight, where no rule ends a request.
func (w *warner) endless(specs []descriptor.DomainSpec) {
	ends := func(r descriptor.RuleSpec) bool { return r.End || len(r.Settle) > 0 }
	if slices.ContainsFunc(specs, func(s descriptor.DomainSpec) bool { return slices.ContainsFunc(s.Rules, ends) }) {
		return
	}
	for path := range w.held(limiter.Limit.IsInFlight) {
		w.Warn(w.Find(path), "counts requests in flight, and no rule ends one: each counts until its max_time is over; "+
			"add a rule such as {match: {reservation_id: \"*\"}, end: true}")
		return
	}
}

// uncounted warns of a consumed quota that has no usage: its name is that of a budget.
func (w *warner) uncounted() {
	for path, l := range w.held(func(l limiter.Limit) bool { return l.BudgetOf() != "" }) {
		w.Warn(w.Find(path), "is a quota with the name of a budget of %s, so that usage and reports leave it out; name it otherwise, such as %s",
			l.BudgetOf(), strings.ReplaceAll(l.Name, ".", "_"))
		return
	}
}

// held returns the limits of a kind that rules consume, each with the path of the consumption. A large file that has none
// is not searched for each rule.
func (w *warner) held(is func(limiter.Limit) bool) iter.Seq2[string, limiter.Limit] {
	return func(yield func(string, limiter.Limit) bool) {
		if !w.consumesAny(is) {
			return
		}
		for _, t := range w.takes {
			for _, c := range t.Consume {
				for h := range w.file.holders(t, c.Limit) {
					n := h.Value.limits.Find(c.Limit)
					if n >= 0 && is(h.Value.limits.At(n)) && !yield(yamlcfg.Join(t.amounts, c.Limit), h.Value.limits.At(n)) {
						return
					}
				}
			}
		}
	}
}

// unresolved refuses consumed limits that only the store can have, unless the rule says so: without them
// each request of the rule is denied.
func (w *warner) unresolved() {
	for _, t := range w.takes {
		for _, c := range t.Consume {
			if !t.rule.Stored && t.rule.Override != c.Limit && !w.resolves[c.Limit] && t.Limits.Find(c.Limit) < 0 && !w.file.planned(t.Plan, c.Limit) {
				w.Fail(w.Find(yamlcfg.Join(t.amounts, c.Limit)), "is nowhere: no level under limits has %s, and neither has the rule; correct the name, or write `stored: expected` where the store has it", c.Limit)
			}
		}
	}
}

// planned reports whether a plan has a limit. A name with a placeholder may be that of each plan.
func (f *file) planned(name, limit string) bool {
	return name != "" && slices.ContainsFunc(f.plans, func(p yamlcfg.Entry[level]) bool {
		return (p.Name == name || strings.Contains(name, "{")) && p.Value.limits.Find(limit) >= 0
	})
}

// budgetPeriod is the shortest period of a limit that is probably meant as a budget.
const budgetPeriod = day

// budgets warns of consumed limits of a day and longer without a smaller burst. Such a burst shows
// that its author knows that the limit does not start anew each period.
func (w *warner) budgets(path string, limits *limiter.Limits) {
	for i := range limits.Len() {
		l := limits.At(i)
		if w.consumed[l.Name] && l.RefillPeriod >= budgetPeriod && l.Capacity >= l.RefillAmount && !l.AdmitsNothing() {
			w.Warn(w.Find(yamlcfg.Join(path, l.Name)), "%s is no budget that starts anew: within %s up to %s are admitted, the capacity and the refill; a smaller burst lowers that",
				l.Text(), yamlcfg.ShortDuration(l.RefillPeriod), money.Amount(l.Name, l.Capacity+l.RefillAmount))
		}
	}
}

// firstPeriod notes that a full bucket adds to what is refilled: the first limit that shows it, for all.
func (w *warner) firstPeriod() {
	for path, of := range w.limits() {
		if w.consumed[of.Name] && of.RefillPeriod < budgetPeriod && of.Capacity == of.RefillAmount && of.Capacity > 1 {
			at, burst := w.Find(yamlcfg.Join(path, of.Name)), max(1, of.Capacity/10)
			amount := func(tokens int64) string { return money.Amount(of.Name, tokens) }
			w.file.cfg.Note = fmt.Sprintf("%s:%d: note: %s is a full bucket and its refill: it admits up to %s in the first %s. {rate: %s, burst: %s} admits at most %s",
				at.File, at.Line, of.Text(), amount(2*of.Capacity), strings.TrimPrefix(of.String(), strconv.FormatInt(of.RefillAmount, 10)+"/"), of.Text(), amount(burst), amount(of.Capacity+burst))
			return
		}
	}
}

// treeBudgets does the same for limits of envoyproxy/ratelimit, whose counters start anew in each
// of their units.
func (w *warner) treeBudgets(tree []descriptor.TreeSpec) {
	for i := range tree {
		s := &tree[i]
		w.treeBudgets(s.Children)
		if s.Limit == nil || s.Limit.RequestsPerUnit == 0 || s.Limit.Unlimited {
			continue
		}
		switch unit := strings.ToLower(s.Limit.Unit); unit {
		case "day", "week", "month", "year":
			n := int64(s.Limit.RequestsPerUnit)
			w.Warn(w.Find(s.Path+".rate_limit"), "%s/%s is no counter that starts anew: within a %s up to %s are admitted, the capacity and the refill; a native rule with a smaller burst lowers that",
				money.Amount("", n), unit, unit, money.Amount("", 2*n))
		}
	}
}

// leases warns of bounds of leases where the store has no leases. A rule without leases is no
// mistake there.
func (f *file) leases(r *yamlcfg.Report, specs []descriptor.DomainSpec) {
	if f.cfg.Store.Type != StoreEmbedded {
		return
	}
	for i := range specs {
		for j := range specs[i].Rules {
			if rule := &specs[i].Rules[j]; rule.Lease != (limiter.LeasePolicy{}) && !rule.Lease.None {
				r.Warn(r.Find(rule.Path+".lease"), "is not used: the store embedded decides in memory, and leases nothing")
			}
		}
	}
}

// unheard warns of headers that are never sent, as no rule outside shadow mode consumes their
// limit.
func (f *file) unheard(r *yamlcfg.Report) {
	on := f.cfg.Headers.OpenAI
	for _, h := range []struct{ key, limit string }{{"requests", on.Requests}, {"tokens", on.Tokens}} {
		if h.limit != "" && !anyConsumes(f.cfg.Rules, h.limit) {
			r.Warn(r.Find(yamlcfg.Join(f.openAI, h.key)), "no rule consumes %s: these headers are never sent", h.limit)
		}
	}
}

func anyConsumes(rules *descriptor.Rules, limit string) bool {
	for _, d := range rules.Domains() {
		for _, r := range d.Rules() {
			if !r.Shadow() && slices.Contains(r.Limits(), limit) {
				return true
			}
		}
	}
	return false
}
