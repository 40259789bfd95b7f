package cli

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// Bounds of a file.
const (
	maxRepeat     = 1_000_000
	maxAdvance    = 10 * 366 * 24 * time.Hour
	maxTestStatus = 599
)

// testFile is a file of cases: calls, and the answers that are expected. Every case begins with full buckets at the same
// time, in memory. Time moves by the steps of the case alone, so a case of a month takes no longer than one of a second.
type testFile struct {
	Name   string
	Config string // path of the configuration, as the file says it; "" = it does not
	Cases  []testCase
}

// testCase is a script of calls against full buckets.
type testCase struct {
	Name  string
	Line  int
	Begin time.Time // of the first step; zero = 2026-01-01, 00:00 UTC
	Steps []testStep
}

// testStep moves time on, and then makes a call, if it has one.
type testStep struct {
	Line    int
	Advance time.Duration
	Call    string     // RateLimitRequest in JSON; "" = none
	Text    string     // of the call, for people
	Repeat  int        // how often the call is made, 1 or more
	Expect  testExpect // of each call; amounts and times of the last
}

// testExpect is the answer that a call should have. Members that are absent are not compared.
type testExpect struct {
	Answer     string // allowed or denied; "" = either
	Status     int    // over HTTP; 0 = any
	Limit      string // that denied
	Entity     string // whose limit denied
	Rule       string // that denied, or that a descriptor of an admitted call matches; none = no rule matches
	Reason     string // of the denial
	Settlement string // result of the settlements; "" = settled, if there are some
	Remaining  *int64 // tokens of the tightest limit, rounded down
	RetryAfter *time.Duration
	Each       []string // allowed or denied, for each descriptor
}

// parseTestFile reads a file of cases, with every mistake in it.
func parseTestFile(name string, data []byte) (*testFile, yamlcfg.Problems) {
	f := &testFile{Name: name}
	problems := yamlcfg.Documents(name, data, f.read)
	if len(problems) == 0 && len(f.Cases) == 0 {
		problems = yamlcfg.Problems{{File: name, Text: "has no case: give cases, each with name and steps"}}
	}
	return f, problems
}

func (f *testFile) read(n yamlcfg.Node) {
	n.Fields(
		yamlcfg.Field{Name: "config", Read: yamlcfg.Name(&f.Config).Decode},
		yamlcfg.Field{Name: "cases", Read: func(n yamlcfg.Node) { n.Items(f.readCase) }},
	)
}

func (f *testFile) readCase(n yamlcfg.Node) {
	c := testCase{Line: n.Line()}
	n.Fields(
		yamlcfg.Field{Name: "name", Read: yamlcfg.Name(&c.Name).Decode},
		yamlcfg.Field{Name: "begin", Read: func(n yamlcfg.Node) {
			begin, err := time.Parse(time.RFC3339, n.Raw())
			if err != nil {
				n.Failf("must be a time such as 2026-03-29T00:00:00+01:00, not %s", n.Describe())
			}
			c.Begin = begin
		}},
		yamlcfg.Field{Name: "steps", Read: func(n yamlcfg.Node) {
			n.Items(func(n yamlcfg.Node) { c.Steps = append(c.Steps, readTestStep(n)) })
		}},
	)
	switch {
	case c.Name == "" && !n.Has("name"):
		n.Failf("needs name")
	case len(c.Steps) == 0:
		n.Failf("has no step: give steps, such as [{call: shop user=ada, expect: allowed}]")
	}
	f.Cases = append(f.Cases, c)
}

func readTestStep(n yamlcfg.Node) testStep {
	s := testStep{Line: n.Line(), Repeat: 1}
	n.Fields(
		yamlcfg.Field{Name: "advance", Read: yamlcfg.Duration(&s.Advance, time.Millisecond, maxAdvance).Decode},
		yamlcfg.Field{Name: "call", Read: s.readCall},
		yamlcfg.Field{Name: "repeat", Read: func(n yamlcfg.Node) {
			repeat := int64(1)
			yamlcfg.Integer(&repeat, 1, maxRepeat).Decode(n)
			s.Repeat = int(repeat)
		}},
		yamlcfg.Field{Name: "expect", Read: func(n yamlcfg.Node) { s.Expect.read(n) }},
	)
	switch {
	case !n.Has("call") && !n.Has("advance"):
		n.Failf("needs call or advance, such as {call: shop user=ada, expect: allowed} or {advance: 30s}")
	case !n.Has("call") && n.Has("expect", "repeat"):
		n.Failf("has expect or repeat, which belong to a call")
	case n.Has("call") && !n.Has("expect"):
		n.Failf("needs expect: allowed, denied, or a mapping such as {answer: denied, limit: rpm}")
	}
	return s
}

// readCall reads a call: "DOMAIN KEY=VALUE...", or a RateLimitRequest.
func (s *testStep) readCall(n yamlcfg.Node) {
	if n.IsScalar() {
		yamlcfg.Name(&s.Text).Decode(n)
		s.Call = readTestCall(n, s.Text)
		return
	}
	var value any
	n.Value(&value)
	text, err := json.Marshal(value)
	if err == nil {
		_, err = rls.ParseCall(text)
	}
	if err != nil {
		n.Failf("%v", err)
		return
	}
	s.Call, s.Text = string(text), string(text)
}

type callEntryJSON struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

type callDescriptorJSON struct {
	Entries []callEntryJSON `json:"entries"`
}

type callJSON struct {
	Domain      string               `json:"domain"`
	Descriptors []callDescriptorJSON `json:"descriptors"`
}

// readTestCall returns the request of the short form of a call.
func readTestCall(n yamlcfg.Node, text string) string {
	fields := strings.Fields(text)
	if len(fields) < 2 {
		n.Failf("must be a domain and entries, such as shop user=ada, or a RateLimitRequest, not %.100q", text)
		return ""
	}
	var d callDescriptorJSON
	for _, field := range fields[1:] {
		key, value, ok := strings.Cut(field, "=")
		if !ok {
			n.Failf("%.100q is not an entry: write KEY=VALUE", field)
			return ""
		}
		d.Entries = append(d.Entries, callEntryJSON{key, value})
	}
	out, err := json.Marshal(callJSON{fields[0], []callDescriptorJSON{d}})
	if err != nil {
		n.Failf("%v", err)
	}
	return string(out)
}

// The answers.
const (
	allowed = "allowed"
	denied  = "denied"
)

// settled is the result of a settlement that is booked.
const settled = "settled"

// settlementResults are the results that a settlement can have here.
func settlementResults() []string {
	return []string{settled, "repeated", "malformed", "forged", "expired", "wrong_namespace", descriptor.NoNumber, descriptor.IsRefund}
}

// read reads the answer alone, or a mapping with more.
func (e *testExpect) read(n yamlcfg.Node) {
	if n.IsScalar() {
		yamlcfg.Enum(&e.Answer, allowed, denied).Decode(n)
		return
	}
	text := func(name string, out *string) yamlcfg.Field {
		return yamlcfg.Field{Name: name, Read: yamlcfg.Text(out).Decode}
	}
	n.Fields(
		yamlcfg.Field{Name: "answer", Read: yamlcfg.Enum(&e.Answer, allowed, denied).Decode},
		yamlcfg.Field{Name: "status", Read: yamlcfg.Integer(&e.Status, http.StatusOK, maxTestStatus).Decode},
		yamlcfg.Field{Name: "settlement", Read: yamlcfg.Enum(&e.Settlement, settlementResults()...).Decode},
		text("limit", &e.Limit), text("entity", &e.Entity), text("rule", &e.Rule), text("reason", &e.Reason),
		yamlcfg.Field{Name: "remaining", Read: func(n yamlcfg.Node) {
			e.Remaining = new(int64)
			yamlcfg.Tokens(e.Remaining, 0, 1<<32-1).Decode(n)
		}},
		yamlcfg.Field{Name: "retry_after", Read: func(n yamlcfg.Node) {
			e.RetryAfter = new(time.Duration)
			yamlcfg.Duration(e.RetryAfter, 0, maxAdvance).Decode(n)
		}},
		yamlcfg.Field{Name: "each", Read: func(n yamlcfg.Node) {
			n.Items(func(n yamlcfg.Node) {
				var one string
				yamlcfg.Enum(&one, allowed, denied).Decode(n)
				e.Each = append(e.Each, one)
			})
		}},
	)
	if e.Answer == allowed && e.Limit+e.Entity+e.Reason != "" {
		n.Failf("answer is allowed; limit, entity and reason are of a denial")
	}
}
