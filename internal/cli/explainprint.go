package cli

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/money"
)

// Printer writes explanations for people.
type Printer struct {
	Live bool // the balances are those of a running service
	wide bool // with the shards of each bucket
}

// WriteExplanation writes the explanation of a descriptor.
func (p Printer) WriteExplanation(w io.Writer, x *admin.Explanation) error {
	var text strings.Builder
	writeAnswer(&text, x, p.Live)
	p.writeLimits(&text, "", x.Limits)
	for _, s := range x.Shadows {
		p.writeLimits(&text, shadowTitle(&s), s.Limits)
	}
	return writeAligned(w, text.String())
}

// shadowTitle names a rule in shadow mode, or shadow limits.
func shadowTitle(s *admin.Shadow) string {
	if s.Rule == "" {
		return "shadow limits"
	}
	return "shadow rule " + s.Rule
}

// writeAligned writes text whose cells end with tabs, in columns.
func writeAligned(w io.Writer, text string) error {
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	if _, err := io.WriteString(tw, text); err != nil {
		return err
	}
	return tw.Flush()
}

// writeCall writes the explanation of a call.
func (p Printer) writeCall(w io.Writer, x *admin.CallExplanation) error {
	var text strings.Builder
	fmt.Fprintf(&text, "domain\t%s\n", x.Domain)
	writeVerdict(&text, x.Admitted, x.Why, x.RetryAfter, x.OnUnavailable, p.Live)
	writeStore(&text, x.Late, x.Fallback)
	for i := range x.Descriptors {
		d := &x.Descriptors[i]
		fmt.Fprintf(&text, "\ndescriptor %d\t%s\n", i+1, d.Descriptor)
		writeRule(&text, &d.Explanation)
		fmt.Fprintf(&text, "outcome\t%s\n", d.Outcome)
		if !d.Admitted {
			verdict := "over its limit"
			if d.Why != "" {
				verdict += " (" + d.Why + ")"
			}
			if d.Quota {
				verdict += "; denies the call only with every other quota"
			}
			fmt.Fprintf(&text, "verdict\t%s\n", verdict)
		}
		writeMissed(&text, &d.Explanation)
		p.writeLimits(&text, "", d.Limits)
		for _, s := range d.Shadows {
			p.writeLimits(&text, shadowTitle(&s), s.Limits)
		}
	}
	return writeAligned(w, text.String())
}

func writeAnswer(tw *strings.Builder, x *admin.Explanation, live bool) {
	fmt.Fprintf(tw, "domain\t%s\n", x.Domain)
	writeRule(tw, x)
	fmt.Fprintf(tw, "outcome\t%s\n", x.Outcome)
	writeVerdict(tw, x.Admitted, x.Why, x.RetryAfter, x.OnUnavailable, live)
	writeStore(tw, x.Late, x.Fallback)
	writeMissed(tw, x)
}

// writeVerdict says whether the request is admitted, when it would be, and how the policy would
// answer it.
func writeVerdict(tw *strings.Builder, admitted bool, why, retryAfter, onUnavailable string, live bool) {
	answer := "admitted"
	if !admitted {
		answer = "denied"
	}
	if why != "" {
		answer += " (" + why + ")"
	}
	fmt.Fprintf(tw, "answer\t%s\n", answer)
	switch {
	case admitted || retryAfter == "":
	case retryAfter == "never":
		fmt.Fprintf(tw, "passes\tnever: it asks for more than a limit holds, or a rule denies it\n")
	default:
		fmt.Fprintf(tw, "passes\t%s, if no other request takes tokens\n", waitText(retryAfter))
	}
	if live && onUnavailable != "" {
		fmt.Fprintf(tw, "outage\t%s, by on_unavailable, if the store did not answer\n", onUnavailable)
	}
}

// waitText is a wait for people: a duration, rounded up, or words such as those of a limit in flight.
func waitText(text string) string {
	d, err := time.ParseDuration(text)
	if err != nil {
		return text
	}
	unit := 100 * time.Millisecond
	switch {
	case d >= time.Hour:
		unit = time.Minute
	case d >= time.Minute:
		unit = time.Second
	}
	text = (d + unit - 1).Truncate(unit).String()
	if d >= time.Hour {
		text = strings.TrimSuffix(text, "0s")
	}
	return "in " + text
}

// writeStore says that the store is slow or does not answer.
func writeStore(tw *strings.Builder, late bool, fallback string) {
	if late {
		fmt.Fprintf(tw, "late\tlimits and balances are those last seen: the store is slow\n")
	}
	if fallback != "" {
		fmt.Fprintf(tw, "fallback\t%s: the store is unavailable, so the policy answers\n", fallback)
	}
}

// writeMissed lists the rules before the one that won.
func writeMissed(tw *strings.Builder, x *admin.Explanation) {
	if len(x.Missed) == 0 {
		return
	}
	fmt.Fprintf(tw, "\nRULES BEFORE IT\tWHY NOT\n")
	for _, m := range x.Missed {
		fmt.Fprintf(tw, "%s\t%s\n", m.Rule, m.Why)
	}
}

// writeRule writes the rule that a descriptor meets, and the decisions of rules in shadow mode.
func writeRule(tw *strings.Builder, x *admin.Explanation) {
	rule := x.Rule
	switch {
	case rule != "":
	case x.Namespace == "":
		rule = "(none: the configuration has no such domain)"
		switch {
		case x.DidYouMean != "":
			rule += fmt.Sprintf("; did you mean %q?", x.DidYouMean)
		case strings.Contains(x.Domain, "="):
			rule += "; the domain comes first: ratelimit explain DOMAIN KEY=VALUE..."
		}
	default:
		rule = "(none matches)"
	}
	fmt.Fprintf(tw, "rule\t%s\n", rule)
	if len(x.Domains) > 0 {
		fmt.Fprintf(tw, "domains\t%s\n", strings.Join(x.Domains, ", "))
	}
	if x.Nearest != nil {
		fmt.Fprintf(tw, "nearest\t%s\n", strings.TrimPrefix(x.Nearest.Rule+": "+x.Nearest.Why, ": "))
	}
	for _, name := range x.Unlisted {
		fmt.Fprintf(tw, "resource\t%q is not in the list of resources: RESOURCE below is the one that it counts as\n", name)
	}
	if x.Lease != "" {
		fmt.Fprintf(tw, "lease\t%s\n", x.Lease)
	}
	for _, s := range x.Shadows {
		if s.Rule == "" {
			fmt.Fprintf(tw, "shadow limits\t%s\n", wouldDo(&s))
		} else {
			fmt.Fprintf(tw, "shadow rule\t%s: %s\n", s.Rule, wouldDo(&s))
		}
	}
}

// wouldDo says whether a rule in shadow mode would deny.
func wouldDo(s *admin.Shadow) string {
	switch {
	case !s.WouldDeny:
		return "would admit"
	case s.Why != "":
		return "would deny (" + s.Why + ")"
	default:
		return "would deny"
	}
}

// writeLimits writes a table of limits. The shards are shown where they were asked for, or a
// bucket has several.
func (p Printer) writeLimits(tw *strings.Builder, title string, limits []admin.Limit) {
	if len(limits) == 0 {
		return
	}
	available := "WHEN FULL"
	if p.Live {
		available = "AVAILABLE"
	}
	if title != "" {
		title = "\n" + title
	}
	sharded := p.wide || slices.ContainsFunc(limits, func(l admin.Limit) bool { return l.Shards != nil && len(l.Shards.All) > 1 })
	fmt.Fprintf(tw, "%s\nENTITY\tRESOURCE\tLIMIT\tRATE\tFROM\tACTION\tAMOUNT\t%s\tENOUGH", title, available)
	if sharded {
		fmt.Fprint(tw, "\tSHARDS\tTAKES FROM")
	}
	fmt.Fprintln(tw)
	for i := range limits {
		l := &limits[i]
		from := l.Source
		if l.Plan != "" && l.Source == limiter.SourcePlan.String() {
			from = "plan " + l.Plan
		}
		fmt.Fprintf(tw, "%s%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%t", strings.Repeat("^ ", l.Level), l.Entity, l.Resource, l.Name,
			money.Amounts(l.Name, l.Rate), from, l.Action, money.Amounts(l.Name, l.Amount), money.Amounts(l.Name, l.Available), l.Enough)
		if sharded {
			fmt.Fprintf(tw, "\t%s", shardsText(l.Shards))
		}
		fmt.Fprintln(tw)
	}
}

// shardsText writes the shards of a bucket as two cells: all of them, and the one that the
// replica takes from first.
func shardsText(s *admin.Shards) string {
	if s == nil {
		return "-\t-"
	}
	all := make([]string, len(s.All))
	for i, index := range s.All {
		all[i] = strconv.Itoa(index)
	}
	return strings.Join(all, ",") + "\t" + strconv.Itoa(s.First)
}
