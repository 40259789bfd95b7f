package rulestest

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// Bounds of a file.
const (
	maxRepeat  = 1_000_000
	maxAdvance = 10 * 366 * 24 * time.Hour
)

// File is a file of cases.
type File struct {
	Name   string
	Config string // path of the configuration, as the file says it; "" = it does not
	Cases  []Case
}

// Case is a script of calls against full buckets.
type Case struct {
	Name  string
	Line  int
	Begin time.Time // of the first step; zero = 2026-01-01, 00:00 UTC
	Steps []Step
}

// Step moves time on, and then makes a call, if it has one.
type Step struct {
	Line    int
	Advance time.Duration
	Call    string // RateLimitRequest in JSON; "" = none
	Text    string // of the call, for people
	Repeat  int    // how often the call is made, 1 or more
	Expect  Expect // of each call; amounts and times of the last
}

// Expect is the answer that a call should have. Members that are absent are not compared.
type Expect struct {
	Answer     string // allowed or denied; "" = either
	Limit      string // that denied
	Entity     string // whose limit denied
	Rule       string // that denied
	Reason     string // of the denial
	Remaining  *int64 // tokens of the tightest limit, rounded down
	RetryAfter *time.Duration
	Each       []string // allowed or denied, for each descriptor
}

// Parse reads a file of cases, with every mistake in it.
func Parse(name string, data []byte) (*File, yamlcfg.Problems) {
	f := &File{Name: name}
	problems := yamlcfg.Documents(name, data, f.read)
	if len(problems) == 0 && len(f.Cases) == 0 {
		problems = yamlcfg.Problems{{File: name, Text: "has no case: give cases, each with name and steps"}}
	}
	return f, problems
}

func (f *File) read(n yamlcfg.Node) {
	n.Fields(
		yamlcfg.Field{Name: "config", Read: yamlcfg.Name(&f.Config).Decode},
		yamlcfg.Field{Name: "cases", Read: func(n yamlcfg.Node) { n.Items(f.readCase) }},
	)
}

func (f *File) readCase(n yamlcfg.Node) {
	c := Case{Line: n.Line()}
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
			n.Items(func(n yamlcfg.Node) { c.Steps = append(c.Steps, readStep(n)) })
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

func readStep(n yamlcfg.Node) Step {
	s := Step{Line: n.Line(), Repeat: 1}
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
func (s *Step) readCall(n yamlcfg.Node) {
	if n.IsScalar() {
		yamlcfg.Name(&s.Text).Decode(n)
		s.Call = callOf(n, s.Text)
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

type entryJSON struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

type descriptorJSON struct {
	Entries []entryJSON `json:"entries"`
}

type callJSON struct {
	Domain      string           `json:"domain"`
	Descriptors []descriptorJSON `json:"descriptors"`
}

// callOf returns the request of the short form of a call.
func callOf(n yamlcfg.Node, text string) string {
	fields := strings.Fields(text)
	if len(fields) < 2 {
		n.Failf("must be a domain and entries, such as shop user=ada, or a RateLimitRequest, not %.100q", text)
		return ""
	}
	var d descriptorJSON
	for _, field := range fields[1:] {
		key, value, ok := strings.Cut(field, "=")
		if !ok {
			n.Failf("%.100q is not an entry: write KEY=VALUE", field)
			return ""
		}
		d.Entries = append(d.Entries, entryJSON{key, value})
	}
	out, err := json.Marshal(callJSON{fields[0], []descriptorJSON{d}})
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

// read reads the answer alone, or a mapping with more.
func (e *Expect) read(n yamlcfg.Node) {
	if n.IsScalar() {
		yamlcfg.Enum(&e.Answer, allowed, denied).Decode(n)
		return
	}
	text := func(name string, out *string) yamlcfg.Field {
		return yamlcfg.Field{Name: name, Read: yamlcfg.Text(out).Decode}
	}
	n.Fields(
		yamlcfg.Field{Name: "answer", Read: yamlcfg.Enum(&e.Answer, allowed, denied).Decode},
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
	if e.Answer == allowed && e.Limit+e.Entity+e.Rule+e.Reason != "" {
		n.Failf("answer is allowed; limit, entity, rule and reason are of a denial")
	}
}
