package migration

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Attributes of a limit are l_{name}_{field}, or w_{name}_{field} of a limit with a window
// that begins with the first use.
const (
	limitPrefix    = "l_"
	windowedPrefix = "w_"
)

// limitsOf returns the limits of an item, and the problems of those that a store cannot
// hold as they are, each with its limit.
func limitsOf(i item) (*limiter.Limits, []problem) {
	var all []limiter.Limit
	var problems []problem
	for _, prefix := range []string{limitPrefix, windowedPrefix} {
		for _, name := range names(i, prefix, "_cp", "_ra", "_rp") {
			l, what, keep := limitOf(i, prefix, name)
			if what != "" {
				problems = append(problems, problem{name, what})
			}
			if keep {
				all = append(all, l)
			}
		}
	}
	limits, err := limiter.NewLimits(all...)
	if err != nil { // too many: each is valid, and under one prefix
		return nil, append(problems, problem{"", "is left out with all its limits: " + err.Error()})
	}
	return limits, problems
}

// problem is a problem of a limit; "" = of all limits of a level.
type problem struct{ limit, what string }

// names returns the names between a prefix and one of the suffixes of attributes, in order.
func names(i item, prefix string, suffixes ...string) []string {
	var found []string
	for attr := range i {
		rest, ok := strings.CutPrefix(attr, prefix)
		for _, suffix := range suffixes {
			if name, of := strings.CutSuffix(rest, suffix); ok && of && name != "" {
				found = append(found, name)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// limitOf returns one limit and the problem with it, "" for none. keep reports whether the
// limit stands all the same.
func limitOf(i item, prefix, name string) (l limiter.Limit, what string, keep bool) {
	attr := func(field string) string { return prefix + name + "_" + field }
	capacity, amount, period, ok := rateOf(i, attr)
	switch {
	case !ok:
		return l, fmt.Sprintf("is left out: %s, %s, %s and, where it is there, %s must be whole numbers", attr("cp"), attr("ra"), attr("rp"), attr("bx")), false
	case i.has(attr("rsched")) || i.has(attr("rsa")) || amount == 0:
		return l, "is left out: it is a quota that is reset at a time, and limits here refill all the time", false
	}
	l = limiter.Custom(name, capacity, amount, seconds(period))
	if err := l.Validate(); err != nil {
		return l, "is left out: " + err.Error(), false
	}
	if i.flag(attr("soft")) {
		return limiter.Unlimited(name), "becomes unlimited: it was counted and never enforced", true
	}
	if what := i.misfit(attr("soft"), aFlag); what != "" {
		return l, what, true
	}
	if i.has(attr("sched")) {
		return l, "stands at all hours with the numbers outside of its schedule: there are no schedules here", true
	}
	return l, "", true
}

// rateOf returns the capacity and the refill of a limit, and whether all are whole numbers.
func rateOf(i item, attr func(field string) string) (capacity, amount, period int64, ok bool) {
	capacity, hasCapacity := i.number(attr("cp"))
	if i.kindOf(attr("bx")) != "" { // before package 0.10 cp was the rate
		capacity, hasCapacity = i.number(attr("bx"))
	}
	amount, hasAmount := i.number(attr("ra"))
	period, hasPeriod := i.number(attr("rp"))
	return capacity, amount, period, hasCapacity && hasAmount && hasPeriod
}

// seconds returns a number of seconds; one that is too long as an invalid period.
func seconds(n int64) time.Duration {
	if n < 0 || n > math.MaxInt64/int64(time.Second) {
		return 0
	}
	return time.Duration(n) * time.Second
}

// policyOf returns the policy of the system's limits for decisions without a store.
func policyOf(i item) (limiter.Policy, string) {
	if what := i.misfit("on_unavailable", aText); what != "" {
		return limiter.Unset, what
	}
	switch text := i.text("on_unavailable"); text {
	case "":
		return limiter.Unset, ""
	case "allow":
		return limiter.Allow, ""
	case "block":
		return limiter.Deny, ""
	default:
		return limiter.Unset, fmt.Sprintf("has on_unavailable %.100q, which is left out: it is neither allow nor block", text)
	}
}

// flagsOf returns the problems of the flags that stand beside limits.
func flagsOf(i item) []string {
	var all []string
	switch {
	case i.flag("disabled"):
		all = append(all, "is disabled, which is not taken over: disable it again")
	case i.text("disabled") != "":
		all = append(all, "is exempt from limits (bypass), which is not taken over")
	case i.misfit("disabled", aFlag) != "":
		all = append(all, i.misfit("disabled", aFlag))
	}
	if i.has("cascade") {
		all = append(all, "has a cascade of its own, which is not taken over: the entity's stands for each resource")
	}
	return all
}
