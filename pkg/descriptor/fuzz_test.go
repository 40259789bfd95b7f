package descriptor_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// FuzzPlan compiles rules from text, plans calls from text, and checks general properties: the
// first match wins, outcomes point at their takes, amounts are in range, and different values give
// different names.
//
// A line of rules is "template key=pattern key?=pattern ...", with "regex:" and
// "cidr:" before the patterns of these kinds; a line of descriptors "key=value ...".
func FuzzPlan(f *testing.F) {
	f.Add("key/{a} a=* b?=x*\n{a}-{b} a=* b=regex:x+(?P<g>.*)\nx/{a} a=cidr:10.0.0.0/8", "a=1 b=xx\na=10.0.0.1\na=/ a=%\n", uint64(3), uint8(1))
	f.Add("{a}%{b} a=* b=*\n*", "a=%25 b=%\na=% b=", uint64(0), uint8(6))
	f.Add("e a=regex:a)|(b\n}{{ a=*", "a=a\xff\x00", ^uint64(0), uint8(15))
	f.Fuzz(func(t *testing.T, ruleText, callText string, hits uint64, flags uint8) {
		if len(ruleText) > 2000 || len(callText) > 2000 {
			return
		}
		specs := fuzzRules(ruleText, flags)
		rules, problems := descriptor.Compile([]descriptor.DomainSpec{{Domain: "d", Rules: specs}}, nil)
		if len(problems) > 0 {
			return
		}
		rules.Warnings()
		call := descriptor.Call{Domain: "d", Hits: hits}
		for line := range strings.Lines(callText) {
			desc := fuzzDescriptor(strings.TrimSuffix(line, "\n"))
			desc.Hits, desc.HitsSet, desc.Refund = hits, flags&1 != 0, flags&2 != 0
			if flags&4 != 0 {
				desc.Limit = &descriptor.Limit{Requests: hits >> 1}
			}
			call.Descriptors = append(call.Descriptors, desc)
		}
		var plan descriptor.Plan
		rules.Plan(&call, &plan)
		checkPlan(t, specs, &call, &plan)
	})
}

func checkPlan(t *testing.T, specs []descriptor.RuleSpec, call *descriptor.Call, plan *descriptor.Plan) {
	t.Helper()
	if len(plan.Outcomes) != len(call.Descriptors) {
		t.Fatalf("outcomes: got %d, want %d", len(plan.Outcomes), len(call.Descriptors))
	}
	type name struct{ template, entity string }
	values := map[name]string{} // the values that a name was made of
	next := 0
	for i, out := range plan.Outcomes {
		desc := call.Descriptors[i]
		if want, _ := firstMatch(specs, desc); !hasBlocks(specs) && ruleName(out.Rule) != want {
			t.Fatalf("rule of %q: got %q, want %q", desc.Entries, ruleName(out.Rule), want)
		}
		if out.Kind == descriptor.Takes && out.First != next {
			t.Fatalf("first take: got %d, want %d", out.First, next)
		}
		next += out.Count
		for _, take := range plan.Request.Takes[out.First : out.First+out.Count] {
			for _, c := range take.Consume {
				if c.Amount < 0 || c.Amount > tokenbucket.MaxAmount {
					t.Fatalf("amount: got %d", c.Amount)
				}
			}
			template := specs[out.Rule.Index()].Takes[0].Entity
			made := strings.Join(usedValues(template, desc), "\x00")
			if before, ok := values[name{template, take.Entity}]; ok && before != made && !repeats(desc) {
				t.Fatalf("template %q: %q and %q both give %q", template, before, made, take.Entity)
			}
			if !repeats(desc) {
				values[name{template, take.Entity}] = made
			}
		}
	}
	if next != len(plan.Request.Takes) {
		t.Fatalf("takes: got %d, want %d", len(plan.Request.Takes), next)
	}
}

// usedValues returns the values of the keys that stand in the template.
func usedValues(template string, desc descriptor.Descriptor) []string {
	var used []string
	for _, e := range desc.Entries {
		if strings.Contains(template, "{"+e.Key+"}") {
			used = append(used, e.Key+"="+e.Value)
		}
	}
	return used
}

// repeats reports whether a key is there twice, or the keys are not in alphabetical order. Then
// equal names may come from different entries.
func repeats(desc descriptor.Descriptor) bool {
	for i := 1; i < len(desc.Entries); i++ {
		if desc.Entries[i].Key <= desc.Entries[i-1].Key {
			return true
		}
	}
	return false
}

// hasBlocks reports whether a rule has blocks of addresses. The slow way of matching supports only
// their plain forms.
func hasBlocks(specs []descriptor.RuleSpec) bool {
	return slices.ContainsFunc(specs, func(spec descriptor.RuleSpec) bool {
		return slices.ContainsFunc(spec.Match, func(m descriptor.MatchSpec) bool { return len(m.CIDR) > 0 })
	})
}

func fuzzRules(text string, flags uint8) []descriptor.RuleSpec {
	lines := strings.Split(text, "\n")
	specs := make([]descriptor.RuleSpec, 0, len(lines))
	for i, line := range lines {
		fields := strings.Split(line, " ")
		match := make([]descriptor.MatchSpec, 0, len(fields)-1)
		for _, field := range fields[1:] {
			name, value, _ := strings.Cut(field, "=")
			m := key(name, value)
			if regex, ok := strings.CutPrefix(value, "regex:"); ok {
				m.Regex = regex
			}
			if block, ok := strings.CutPrefix(value, "cidr:"); ok {
				m.CIDR = []string{block}
			}
			match = append(match, m)
		}
		spec := rule(match...)
		spec.Name = "r" + strings.Repeat("+", i%60)
		spec.Open = len(match) == 0 || flags&8 != 0
		spec.Overdraw = flags&16 != 0
		spec.Shadow = flags&32 != 0 && i%2 == 0
		spec.Takes[0].Entity = fields[0]
		spec.Takes[0].Consume[0].PerHit = 1 << (flags % 60)
		specs = append(specs, spec)
	}
	return specs
}

func fuzzDescriptor(line string) descriptor.Descriptor {
	var desc descriptor.Descriptor
	for field := range strings.SplitSeq(line, " ") {
		name, value, _ := strings.Cut(field, "=")
		desc.Entries = append(desc.Entries, descriptor.Entry{Key: name, Value: value})
	}
	return desc
}
