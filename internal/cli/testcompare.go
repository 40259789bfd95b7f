package cli

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// compare returns the members of an answer that are not as expected. Amounts and times are
// those of the last call of a step.
func (e *testExpect) compare(got *testAnswer, last bool) (wrong []mismatch) {
	check := func(member, want, got string) {
		if want != "" && want != got {
			wrong = append(wrong, mismatch{member, want, got})
		}
	}
	check("answer", e.Answer, testVerdict(got.OverallCode))
	if e.Status != 0 {
		check("status", strconv.Itoa(e.Status), strconv.Itoa(got.Status))
	}
	check("limit", e.Limit, got.Metadata.Limit)
	check("entity", e.Entity, got.Metadata.Entity)
	check("reason", e.Reason, got.Metadata.Reason)
	wrong = append(wrong, e.compareRule(got)...)
	check("settlement", e.settlement(got), got.settlement())
	check("each", strings.Join(e.Each, " "), got.each())
	if e.Remaining != nil && last {
		check("remaining", strconv.FormatInt(*e.Remaining, 10), got.remaining())
	}
	if e.RetryAfter != nil && last {
		check("retry_after", e.RetryAfter.String(), (time.Duration(got.Metadata.RetryAfter) * time.Second).String())
	}
	if len(wrong) > 0 { // with the whole explanation
		wrong = got.explain(wrong)
	}
	return wrong
}

// compareRule returns the difference of the rules. A call that no rule matches is wrong, unless that is expected.
func (e *testExpect) compareRule(got *testAnswer) []mismatch {
	switch {
	case e.Rule == "" && e.Reason == "" && got.rule() == noRule:
		return []mismatch{got.unmatched()}
	case e.Rule == "" || got.hasRule(e.Rule):
		return nil
	case got.rule() == noRule:
		return []mismatch{{"rule", e.Rule, got.unmatched().Got}}
	}
	return []mismatch{{"rule", e.Rule, got.rule()}}
}

// settlement is the expected result of the settlements of an answer: they settle, unless another is expected.
func (e *testExpect) settlement(got *testAnswer) string {
	if e.Settlement == "" && len(got.Metadata.Settlements) > 0 {
		return settled
	}
	return e.Settlement
}

// settlement has the results of the settlements, each once; none = nothing was settled.
func (a *testAnswer) settlement() string {
	var all []string
	for _, s := range a.Metadata.Settlements {
		if !slices.Contains(all, s.Result) {
			all = append(all, s.Result)
		}
	}
	return cmp.Or(strings.Join(all, ", "), "none")
}

func testVerdict(code string) string {
	if code == "OVER_LIMIT" {
		return denied
	}
	return allowed
}

// each has the verdict of each descriptor.
func (a *testAnswer) each() string {
	all := make([]string, len(a.Statuses))
	for i, s := range a.Statuses {
		all[i] = testVerdict(s.Code)
	}
	return strings.Join(all, " ")
}

// remaining is the fewest tokens of the descriptors that a limit spoke for; none = no limit did.
func (a *testAnswer) remaining() string {
	text, least := "none", int64(0)
	for _, s := range a.Statuses {
		if s.CurrentLimit != nil && (text == "none" || s.LimitRemaining < least) {
			least = s.LimitRemaining
			text = strconv.FormatInt(least, 10)
		}
	}
	return text
}

// shadow says which rules would deny; "" for none.
func (a *testAnswer) shadow() string {
	var names []string
	for _, d := range a.Metadata.Shadow {
		if !slices.Contains(names, d.Rule) {
			names = append(names, d.Rule)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "would be denied by " + strings.Join(names, ", ")
}

// explain adds the other members that were not compared.
func (a *testAnswer) explain(wrong []mismatch) []mismatch {
	have := make(map[string]bool)
	for _, m := range wrong {
		have[m.Member] = true
	}
	for _, m := range []mismatch{
		{"limit", "", a.Metadata.Limit},
		{"entity", "", a.Metadata.Entity},
		{"rule", "", a.rule()},
		{"reason", "", a.Metadata.Reason},
		{"remaining", "", a.remaining()},
		{"shadow", "", a.shadow()},
	} {
		if !have[m.Member] && m.Got != "" && m.Got != "none" {
			wrong = append(wrong, m)
		}
	}
	return wrong
}
