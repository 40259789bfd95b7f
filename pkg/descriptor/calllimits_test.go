package descriptor_test

import (
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// callLimits are rules of a domain with limits of a limitador file.
func callLimits(t *testing.T, limits ...descriptor.CallLimitSpec) *descriptor.Rules {
	t.Helper()
	rules, problems := descriptor.Compile([]descriptor.DomainSpec{{Domain: "d", Limits: limits}}, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return rules
}

func planLimits(rules *descriptor.Rules, use descriptor.Use, hits uint64, descriptors ...map[string]string) *descriptor.Plan {
	call := descriptor.Call{Domain: "d", Hits: hits, Use: use}
	for _, d := range descriptors {
		entries := make([]descriptor.Entry, 0, len(d))
		for key, value := range d {
			entries = append(entries, descriptor.Entry{Key: key, Value: value})
		}
		call.Descriptors = append(call.Descriptors, descriptor.Descriptor{Entries: entries})
	}
	var plan descriptor.Plan
	rules.Plan(&call, &plan)
	return &plan
}

// The limits that apply are taken together, each from the bucket of the values of its variables.
func TestCallLimits(t *testing.T) {
	t.Parallel()
	rules := callLimits(t,
		descriptor.CallLimitSpec{Name: "get", MaxValue: 10, Seconds: 60, Conditions: []string{`descriptors[0]["method"] == "GET"`}, Variables: []string{`descriptors[0]["user"]`}},
		descriptor.CallLimitSpec{MaxValue: 5, Seconds: 10, Conditions: []string{`descriptors[0].method != "POST"`, `descriptors[1].tier == "free"`}},
		descriptor.CallLimitSpec{Name: "never", MaxValue: 0, Seconds: 1, Conditions: []string{`descriptors[0].banned == "1"`}},
		descriptor.CallLimitSpec{Name: "rpm.shadow", MaxValue: 7, Seconds: 60},
	)
	for _, test := range []struct {
		of   []map[string]string
		want string
	}{
		{[]map[string]string{{"method": "GET", "user": "al/b"}}, "get:descriptors[0][\"user\"]=al%2Fb rpm.shadow:all"},
		{[]map[string]string{{"method": "GET", "user": "al"}, {"tier": "free"}}, "get:descriptors[0][\"user\"]=al limit-2:all rpm.shadow:all"},
		{[]map[string]string{{"method": "GET"}}, "rpm.shadow:all"},
		{[]map[string]string{{"method": "POST", "user": "al"}, {"tier": "free"}}, "rpm.shadow:all"},
		{[]map[string]string{{"method": "GET", "user": "al", "banned": "1"}}, "denied never"},
	} {
		plan := planLimits(rules, descriptor.UseTake, 3, test.of...)
		var got []string
		for i, take := range plan.Request.Takes {
			got = append(got, plan.Applied[i].Name()+":"+take.Entity)
			if take.Consume[0].Amount != 3*limiter.Milli || take.Resource != "d" || take.Mode != limiter.Consume {
				t.Errorf("take %+v", take)
			}
		}
		if o := plan.Outcomes[0]; o.Kind == descriptor.Denied {
			got = append(got, "denied", o.Rule.Name())
		}
		if text := strings.Join(got, " "); text != test.want {
			t.Errorf("%v: got %s, want %s", test.of, text, test.want)
		}
		if len(plan.Outcomes) != len(test.of) {
			t.Errorf("%d outcomes of %d descriptors", len(plan.Outcomes), len(test.of))
		}
	}
}

// A use decides the amount and its mode.
func TestCallLimitsUse(t *testing.T) {
	t.Parallel()
	rules := callLimits(t, descriptor.CallLimitSpec{MaxValue: 10, Seconds: 60}, descriptor.CallLimitSpec{MaxValue: 0, Seconds: 10, Conditions: []string{`descriptors[0].x == "0"`}})
	for _, test := range []struct {
		use      descriptor.Use
		hits     uint64
		x        string
		kind     descriptor.Kind
		mode     limiter.Mode
		amount   int64
		reserves int
		peek     bool
	}{
		{descriptor.UseTake, 0, "1", descriptor.Takes, limiter.Consume, 1, 0, false},
		{descriptor.UseCheck, 50, "1", descriptor.Takes, limiter.Consume, 0, 0, false},
		{descriptor.UseReport, 50, "1", descriptor.Takes, limiter.Charge, 50, 0, false},
		{descriptor.UseReport, 0, "0", descriptor.Takes, limiter.Charge, 1, 0, false},
		{descriptor.UseReserve, 4, "1", descriptor.Takes, limiter.Consume, 4, 1, false},
		{descriptor.UseReserve, 0, "0", descriptor.Takes, limiter.Consume, 0, 0, true},
		{descriptor.UseReserve, 1, "0", descriptor.Denied, limiter.Consume, 0, 0, false},
		{descriptor.UseCheck, 0, "0", descriptor.Denied, limiter.Consume, 0, 0, false},
	} {
		plan := planLimits(rules, test.use, test.hits, map[string]string{"x": test.x})
		o := plan.Outcomes[0]
		if o.Kind != test.kind || len(plan.Reserves) != test.reserves || o.Peek != test.peek {
			t.Errorf("%+v: got %+v", test, o)
			continue
		}
		if o.Kind == descriptor.Takes && (plan.Request.Takes[0].Mode != test.mode || plan.Request.Takes[0].Consume[0].Amount != test.amount*limiter.Milli) {
			t.Errorf("%+v: got %+v", test, plan.Request.Takes[0])
		}
	}
}

// What a client sends cannot switch a limit off by an error.
func TestCallLimitsConditionFails(t *testing.T) {
	t.Parallel()
	rules := callLimits(t, descriptor.CallLimitSpec{Name: "number", MaxValue: 10, Seconds: 60, Conditions: []string{`int(descriptors[0].n) > 3`}})
	if o := planLimits(rules, descriptor.UseTake, 1, map[string]string{"n": "x"}).Outcomes[0]; o.Kind != descriptor.Denied || o.Why != descriptor.ConditionFailed {
		t.Errorf("got %+v", o)
	}
	if o := planLimits(rules, descriptor.UseReport, 1, map[string]string{"n": "x"}).Outcomes[0]; o.Kind != descriptor.Takes || o.Why != descriptor.ConditionFailed {
		t.Errorf("a charge: got %+v", o)
	}
	if o := planLimits(rules, descriptor.UseTake, 1, map[string]string{"n": "2"}).Outcomes[0]; o.Kind != descriptor.Unmatched {
		t.Errorf("got %+v", o)
	}
}

// Another value or order of the same limit keeps its buckets.
func TestCallLimitsKeepBuckets(t *testing.T) {
	t.Parallel()
	of := func(s descriptor.CallLimitSpec) string {
		return planLimits(callLimits(t, s), descriptor.UseTake, 1, map[string]string{"a": "1", "b": "2"}).Request.Takes[0].LimitsOf
	}
	one := descriptor.CallLimitSpec{MaxValue: 10, Seconds: 60, Conditions: []string{`descriptors[0].a == "1"`, `descriptors[0].b == "2"`}}
	other := descriptor.CallLimitSpec{MaxValue: 20, Seconds: 60, Conditions: []string{`descriptors[0].b == "2"`, `descriptors[0].a == "1"`}}
	if of(one) != of(other) {
		t.Errorf("got %s and %s", of(one), of(other))
	}
	other.Seconds = 61
	if of(one) == of(other) {
		t.Error("a limit of other seconds has the same bucket")
	}
}

func TestCallLimitsMistakes(t *testing.T) {
	t.Parallel()
	same := descriptor.CallLimitSpec{Path: "[0]", MaxValue: 1, Seconds: 60}
	again := same
	again.Path, again.MaxValue = "[1]", 2
	_, problems := descriptor.Compile([]descriptor.DomainSpec{{Domain: "d", Limits: []descriptor.CallLimitSpec{
		same, again, {Path: "[2]", MaxValue: 1, Seconds: 1, Conditions: []string{`req.method == "GET"`}, Variables: []string{"descriptors"}},
	}}}, nil)
	got := make([]string, 0, len(problems))
	for _, p := range problems {
		got = append(got, p.Path+" "+p.Text)
	}
	text := strings.Join(got, "\n")
	for _, want := range []string{"[1] has the seconds, conditions and variables of [0]", "[2].conditions[0] is no expression of CEL", "undeclared reference to 'req'", "[2].variables[0] gives list"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}
