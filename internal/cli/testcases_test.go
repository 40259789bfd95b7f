package cli

import (
	"context"
	"encoding/xml"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/config"
)

// testedRules give a user 2 requests a minute, and reserve tokens of a model.
const testedRules = `
limits: {system: {rpm: 2/minute, tpm: 100/minute, usd: 5 USD/month calendar}}
prices: {gpt: {input: 2.50 USD}}
domains:
- domain: shop
  rules:
  - {name: users, match: {user: "*"}, entity: "user/{user}", resource: api, consume: {rpm: hits}}
- domain: money
  rules:
  - {name: image, match: {image: "*"}, entity: "user/{image}", resource: api, consume: {usd: 1.5 USD}}
  - {name: page, match: {page: "*"}, entity: "user/{page}", resource: api, consume: {usd: {hits: 0.0005 USD}}}
  - {name: model, match: {model: "*", kind: input, user: "*"}, entity: "user/{user}", resource: api, consume: {usd: price}}
  - {name: estimate, match: {job: "*"}, entity: "user/{job}", resource: api, reserve: {usd: {hits: 1 USD, estimate: {min: 1 USD, max: 2 USD}}}}
- domain: door
  rules:
  - {name: closed, match: {user: mallory}, deny: {status: 403, body: closed}}
  - {name: gone, match: {user: eve}, deny: {status: 400}}
  - {name: tried, match: {job: "*"}, entity: "user/{job}", resource: api, limits: {jobs: 1/minute}, consume: {jobs: hits}, mode: shadow}
- domain: chat
  rules:
  - {name: settle, match: {reservation_id: "*"}, settle: {tpm: hits}}
  - {name: reserve, match: {key: "*"}, entity: "key/{key}", resource: api, reserve: {tpm: hits}}
`

func runTestFile(t *testing.T, text string) testSuite {
	t.Helper()
	return runTestFileOn(t, testedRules, nil, text)
}

// runTestFileOn runs a file of cases on other rules, which may include files.
func runTestFileOn(t *testing.T, rules string, files fs.FS, text string) testSuite {
	t.Helper()
	cfg, err := config.Parse("rules.yaml", []byte(rules), files)
	if err != nil {
		t.Fatal(err)
	}
	f, wrong := parseTestFile("c.yaml", []byte(text))
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	results, err := f.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return testSuite{File: f, Results: results}
}

func textOf(t *testing.T, s testSuite) string {
	t.Helper()
	var b strings.Builder
	if err := writeTestText(&b, []testSuite{s}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Cases have buckets of their own, and time moves by their steps alone.
func TestCases(t *testing.T) {
	got := textOf(t, runTestFile(t, `
cases:
- name: first
  steps:
  - {call: shop user=ada, repeat: 2, expect: {answer: allowed, remaining: 0}}
  - {call: shop user=ada, expect: {answer: denied, limit: rpm, entity: user/ada, rule: users, reason: limit_exhausted, retry_after: 30s, remaining: 0}}
  - {advance: 720h}
  - {call: shop user=ada, expect: {answer: allowed, remaining: 1}}
- name: second
  steps:
  - {call: {domain: shop, descriptors: [{entries: [{key: user, value: ada}], hitsAddend: 2}, {entries: [{key: user, value: eve}]}]}, expect: {answer: allowed, each: [allowed, allowed]}}
- name: money
  steps:
  - {call: money image=ada, expect: {answer: allowed, remaining: 3.50 USD}}
  - {call: money page=ada, expect: {answer: allowed, remaining: 3.4995 USD}}
  - {call: {domain: money, descriptors: [{entries: [{key: model, value: gpt}, {key: kind, value: input}, {key: user, value: ada}], hitsAddend: 100000}]}, expect: {answer: allowed, remaining: 3.2495 USD}}
  - {call: money job=eve, expect: {answer: allowed, remaining: 3 USD}}
- name: reservation
  steps:
  - {call: {domain: chat, descriptors: [{entries: [{key: key, value: k}], hits_addend: 100}]}, expect: {answer: allowed, remaining: 0}}
  - {call: {domain: chat, descriptors: [{entries: [{key: reservation_id, value: "${reservation}"}], hits_addend: 40}]}, expect: allowed}
  - {call: {domain: chat, descriptors: [{entries: [{key: key, value: k}], hits_addend: 0}]}, expect: {answer: allowed, remaining: 60}}
`))
	want := `ok    c.yaml:3  first
ok    c.yaml:9  second
ok    c.yaml:12  money
ok    c.yaml:18  reservation
4 cases, 0 failed, 12 calls
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A failure names its line, the call, the expected and the real answer.
func TestFailedCase(t *testing.T) {
	s := runTestFile(t, `cases:
- name: "too many # <&>"
  steps:
  - {call: shop user=ada, repeat: 3, expect: allowed}
- name: wrong limit
  steps:
  - {advance: 1m, call: shop user=ada, repeat: 2, expect: allowed}
  - {call: shop user=ada, expect: {answer: denied, limit: tpm, retry_after: 1s}}
- name: too few
  steps:
  - {call: shop user=ada, expect: {answer: denied, each: [denied, denied], remaining: 7}}
`)
	want := `FAIL  c.yaml:2  too many # <&>
      c.yaml:4: shop user=ada, call 3 of 3, after 0s
      - answer: allowed
      + answer: denied
        limit: rpm
        entity: user/ada
        rule: users
        reason: limit_exhausted
        remaining: 0
FAIL  c.yaml:5  wrong limit
      c.yaml:8: shop user=ada, after 1m0s
      - limit: tpm
      + limit: rpm
      - retry_after: 1s
      + retry_after: 30s
        entity: user/ada
        rule: users
        reason: limit_exhausted
        remaining: 0
FAIL  c.yaml:9  too few
      c.yaml:11: shop user=ada, after 0s
      - answer: denied
      + answer: allowed
      - each: denied denied
      + each: allowed
      - remaining: 7
      + remaining: 1
        rule: users
3 cases, 3 failed, 7 calls
`
	if diff := cmp.Diff(want, textOf(t, s)); diff != "" {
		t.Error(diff)
	}
	var tap, junit strings.Builder
	if err := writeTAP(&tap, []testSuite{s}); err != nil || !strings.Contains(tap.String(), "1..3\nnot ok 1 - c.yaml:2 too many \\# <&>\n# c.yaml:4: ") {
		t.Errorf("%v\n%s", err, tap.String())
	}
	var read struct {
		Suites []struct {
			Failures int `xml:"failures,attr"`
			Cases    []struct {
				Name    string `xml:"name,attr"`
				Failure struct {
					Message string `xml:"message,attr"`
				} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	err := writeJUnit(&junit, []testSuite{s})
	if err == nil {
		err = xml.Unmarshal([]byte(junit.String()), &read)
	}
	if err != nil || read.Suites[0].Failures != 3 || read.Suites[0].Cases[0].Name != "too many # <&>" || read.Suites[0].Cases[1].Failure.Message != "limit is rpm, not tpm" {
		t.Errorf("%v\n%s", err, junit.String())
	}
}

// Every mistake of a file is reported with its line.
func TestMistakesOfTestFiles(t *testing.T) {
	for file, want := range map[string]string{
		"":                       "c.yaml: has no case",
		"case: []":               `c.yaml:1: case: unknown key "case"; did you mean "cases"?`,
		"cases: [{steps: [{}]}]": "c.yaml:1: cases[0]: needs name\nc.yaml:1: cases[0].steps[0]: needs call or advance",
		"cases: [{name: a}]":     "cases[0]: has no step",
		"cases: [{name: a, steps: [{call: shop user=ada}]}]":                                               "needs expect: allowed, denied",
		"cases: [{name: a, steps: [{advance: 1s, expect: allowed}]}]":                                      "which belong to a call",
		"cases: [{name: a, steps: [{call: shop, expect: allowed}]}]":                                       "must be a domain and entries",
		"cases: [{name: a, steps: [{call: shop ada, expect: allowed}]}]":                                   `"ada" is not an entry: write KEY=VALUE`,
		"cases: [{name: a, steps: [{call: shop user=ada, expect: allowd}]}]":                               `did you mean "allowed"?`,
		"cases: [{name: a, steps: [{call: shop user=ada, expect: {answer: allowed, limit: rpm}}]}]":        "are of a denial",
		"cases: [{name: a, steps: [{call: shop user=ada, repeat: 0, expect: allowed}]}]":                   "must be a whole number, 1 to 1_000_000",
		"cases: [{name: a, steps: [{advance: -1s}]}]":                                                      "must be 1ms to",
		"cases: [{name: a, steps: [{call: {domain: shop}, expect: allowed}]}]":                             "no descriptors",
		"cases: [{name: a, steps: [{call: {domain: shop, descriptors: [{entry: []}]}, expect: allowed}]}]": `unknown field "entry"`,
		"cases: [{name: a, steps: [{call: {domain: shop, descriptors: [{1: 2}]}, expect: allowed}]}]":      "c.yaml:1: cases[0].steps[0].call",
	} {
		if _, problems := parseTestFile("c.yaml", []byte(file)); !strings.Contains(problems.Error(), want) {
			t.Errorf("%s:\ngot  %v\nwant %s", file, problems, want)
		}
	}
}

// A denial is one whatever status its rule gives.
func TestDenialsWithAStatus(t *testing.T) {
	got := textOf(t, runTestFile(t, `cases:
- name: a status of its own
  steps:
  - {call: door user=mallory, expect: denied}
  - {call: door user=mallory, expect: {answer: denied, status: 403, rule: closed, reason: denied_by_rule}}
  - {call: door user=eve, expect: {status: 400}}
- name: another status
  steps:
  - {call: door user=mallory, expect: {answer: denied, status: 429}}
- name: a rule in shadow mode
  steps:
  - {call: door job=a, repeat: 2, expect: allowed}
  - {call: door job=a, expect: denied}
- name: the status of others
  steps:
  - {call: shop user=ada, repeat: 2, expect: {status: 200}}
  - {call: shop user=ada, expect: {status: 429}}
`))
	want := `ok    c.yaml:2  a status of its own
FAIL  c.yaml:7  another status
      c.yaml:9: door user=mallory, after 0s
      - status: 429
      + status: 403
        rule: closed
        reason: denied_by_rule
FAIL  c.yaml:10  a rule in shadow mode
      c.yaml:13: door job=a, after 0s
      - answer: denied
      + answer: allowed
        rule: tried
        shadow: would be denied by tried
ok    c.yaml:14  the status of others
4 cases, 2 failed, 10 calls
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A call without an answer fails its case, and the others run.
func TestCaseWithoutAnAnswer(t *testing.T) {
	s := runTestFile(t, `cases:
- name: no reservation
  steps:
  - {call: 'chat reservation_id=${reservation}', expect: allowed}
- name: fine
  steps:
  - {call: shop user=ada, expect: allowed}
`)
	const why = "the call has ${reservation}, and no call before it made a reservation"
	want := `FAIL  c.yaml:2  no reservation
      c.yaml:4: chat reservation_id=${reservation}, after 0s
      error: ` + why + `
ok    c.yaml:5  fine
2 cases, 1 failed, 1 calls
`
	if diff := cmp.Diff(want, textOf(t, s)); diff != "" {
		t.Error(diff)
	}
	var tap, junit strings.Builder
	if err := errors.Join(writeTAP(&tap, []testSuite{s}), writeJUnit(&junit, []testSuite{s})); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(tap.String(), "# error: "+why) || !strings.Contains(junit.String(), `message="`+why+`"`) {
		t.Errorf("%s\n%s", tap.String(), junit.String())
	}
}

// A call that no rule matches fails its case, unless the case says so: a misspelt call would check nothing.
func TestCallsThatNoRuleMatches(t *testing.T) {
	got := textOf(t, runTestFile(t, `cases:
- name: a domain that is none
  steps:
  - {call: shpo user=ada, expect: allowed}
- name: a key that is none
  steps:
  - {call: shop usr=ada, expect: {answer: allowed, remaining: 1}}
- name: another rule
  steps:
  - {call: shop user=ada, expect: {answer: allowed, rule: guests}}
- name: none is expected, and one matches
  steps:
  - {call: shop user=ada, expect: {answer: allowed, rule: none}}
- name: as expected
  steps:
  - {call: shop user=ada, expect: {answer: allowed, rule: users}}
  - {call: shop usr=ada, expect: {answer: allowed, rule: none}}
  - {call: door job=a, expect: {answer: allowed, rule: tried}}
  - call: {domain: shop, descriptors: [{entries: [{key: usr, value: ada}]}, {entries: [{key: user, value: ada}]}]}
    expect: {answer: allowed, rule: users}
`))
	want := `FAIL  c.yaml:2  a domain that is none
      c.yaml:4: shpo user=ada, after 0s
      - rule: one that matches, or rule: none where none should
      + rule: none: there is no domain "shpo"; did you mean "shop"?
FAIL  c.yaml:5  a key that is none
      c.yaml:7: shop usr=ada, after 0s
      - rule: one that matches, or rule: none where none should
      + rule: none: the nearest is users: key user missing; has key usr, which the rule does not name (did you mean user?)
      - remaining: 1
      + remaining: none
FAIL  c.yaml:8  another rule
      c.yaml:10: shop user=ada, after 0s
      - rule: guests
      + rule: users
        remaining: 1
FAIL  c.yaml:11  none is expected, and one matches
      c.yaml:13: shop user=ada, after 0s
      - rule: none
      + rule: users
        remaining: 1
ok    c.yaml:14  as expected
5 cases, 4 failed, 8 calls
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A settlement settles, unless the case expects another result: any id is allowed.
func TestSettlementsOfCases(t *testing.T) {
	const settle = `{domain: chat, descriptors: [{entries: [{key: reservation_id, value: "${reservation}"}], hits_addend: 1}]}`
	got := textOf(t, runTestFile(t, `cases:
- name: an id that is none
  steps:
  - {call: {domain: chat, descriptors: [{entries: [{key: reservation_id, value: bogus}], hits_addend: 1}]}, expect: allowed}
- name: twice
  steps:
  - {call: chat key=k, expect: allowed}
  - {call: `+settle+`, expect: {settlement: settled}}
  - {call: `+settle+`, expect: {answer: allowed, settlement: repeated}}
  - {call: chat reservation_id=bogus, expect: {settlement: no_number}}
- name: nothing to settle
  steps:
  - {call: chat key=k, expect: {settlement: settled}}
`))
	want := `FAIL  c.yaml:2  an id that is none
      c.yaml:4: {"descriptors":[{"entries":[{"key":"reservation_id","value":"bogus"}],"hits_addend":1}],"domain":"chat"}, after 0s
      - settlement: settled
      + settlement: malformed
        rule: settle
ok    c.yaml:5  twice
FAIL  c.yaml:11  nothing to settle
      c.yaml:13: chat key=k, after 0s
      - settlement: settled
      + settlement: none
        rule: reserve
        remaining: 99
3 cases, 2 failed, 6 calls
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Cases over files of envoyproxy/ratelimit have the answers of the service, also in its modes for all of them.
func TestModesOfEnvoyproxyFiles(t *testing.T) {
	const limits = "domain: shop\ndescriptors:\n" +
		"- {key: tried, shadow_mode: true, rate_limit: {unit: hour, requests_per_unit: 1}}\n" +
		"- {key: quota, quota_mode: true, rate_limit: {unit: hour, requests_per_unit: 1}}\n" +
		"- {key: other, quota_mode: true, rate_limit: {unit: hour, requests_per_unit: 1}}\n" +
		"- {key: user, rate_limit: {unit: hour, requests_per_unit: 1}}\n"
	two := func(a, b string) string {
		return "{domain: shop, descriptors: [{entries: [{key: " + a + ", value: a}]}, {entries: [{key: " + b + ", value: a}]}]}"
	}
	cases := "cases:\n" +
		"- {name: shadow, steps: [{call: shop tried=a, repeat: 2, expect: {answer: allowed, each: [allowed]}}]}\n" +
		"- {name: quota, steps: [{call: shop quota=a, expect: allowed}, {call: " + two("quota", "other") + ", expect: {answer: allowed, each: [denied, allowed]}}]}\n" +
		"- {name: user, steps: [{call: shop user=a, expect: allowed}, {call: " + two("user", "other") + ", expect: {each: [denied, allowed], status: 200}}]}\n"
	for settings, want := range map[string]string{
		"{}":                                 "3 cases, 1 failed, 6 calls\n",
		"{shadow_mode: true}":                "3 cases, 0 failed, 6 calls\n",
		"{quota_mode: true}":                 "3 cases, 0 failed, 6 calls\n",
		"{quota_mode: true, metadata: none}": "3 cases, 0 failed, 6 calls\n",
	} {
		ran := runTestFileOn(t, "include: [{path: envoy.yaml}]\nenvoyproxy: "+settings, fstest.MapFS{"envoy.yaml": {Data: []byte(limits)}}, cases)
		if got := textOf(t, ran); !strings.HasSuffix(got, want) {
			t.Errorf("envoyproxy: %s:\n%s", settings, got)
		}
	}
}

// A model of the price 0 costs nothing, also where the budget is used up; other limits of its rule count.
func TestModelsOfThePriceZero(t *testing.T) {
	const file = `
limits: {system: {usd: 2 USD/month calendar, rpm: 3/hour, slots: 1/hour}}
prices: {paid: {output: 1}, gift: {input: 0, output: 0 USD}}
domains:
- domain: llm
  rules:
  - {name: used, match: {user: "*", model: "*", kind: "*"}, entity: "user/{user}", resource: api, consume: {usd: price}, override: usd}
  - {name: asked, match: {user: "*", model: "*", kind: "*", with: rpm}, entity: "user/{user}", resource: api, consume: {usd: price, rpm: hits, slots: 0}}
  - {name: hold, match: {user: "*"}, entity: "user/{user}", resource: api, reserve: {usd: 2 USD}}
  - {name: settle, match: {reservation_id: "*", model: "*", kind: output}, settle: {usd: price}}
`
	const cases = `cases:
- name: free
  steps:
  - {call: {domain: llm, descriptors: [{entries: [{key: user, value: a}, {key: model, value: paid}, {key: kind, value: output}], hitsAddend: 2000000}]}, expect: {answer: allowed, remaining: 0}}
  - {call: llm user=a model=paid kind=output, expect: denied}
  - {call: llm user=a model=gift kind=output, repeat: 9, expect: {answer: allowed, rule: used gift output}}
  - {call: llm user=a model=gift kind=input with=rpm, repeat: 3, expect: {answer: allowed, rule: asked gift input}}
  - {call: llm user=a model=gift kind=input with=rpm, expect: {answer: denied, limit: rpm}}
  - {call: llm user=a model=gift kind=cached, expect: {answer: allowed, rule: none}}
- name: settled
  steps:
  - {call: llm user=a, expect: {answer: allowed, remaining: 0}}
  - {call: {domain: llm, descriptors: [{entries: [{key: reservation_id, value: "${reservation}"}, {key: model, value: gift}, {key: kind, value: output}], hitsAddend: 5}]}, expect: allowed}
  - {call: llm user=a, expect: {answer: allowed, remaining: 0}}
`
	if got := textOf(t, runTestFileOn(t, file, nil, cases)); !strings.HasSuffix(got, "2 cases, 0 failed, 19 calls\n") {
		t.Error(got)
	}
}

// A run that breaks off has the outcome of the cases until then.
func TestRunThatBreaksOff(t *testing.T) {
	cfg, err := config.Parse("rules.yaml", []byte(testedRules), nil)
	if err != nil {
		t.Fatal(err)
	}
	f, _ := parseTestFile("c.yaml", []byte("cases: [{name: a, steps: [{call: shop user=ada, expect: allowed}]}]"))
	stopped := testRun{f, cfg}
	ctx, cancel := context.WithCancelCause(t.Context())
	first, err := runTests(ctx, []testRun{stopped})
	if err != nil || len(first) != 1 {
		t.Fatalf("%v, %v", first, err)
	}
	cancel(errors.New("interrupted"))
	suites, err := runTests(ctx, []testRun{stopped, stopped})
	if err == nil || !strings.Contains(err.Error(), "c.yaml:1: ") || len(suites) != 1 || len(suites[0].Results) != 0 {
		t.Errorf("got %v, %v", suites, err)
	}
}

func FuzzParseTestFile(f *testing.F) {
	f.Add("cases: [{name: a, steps: [{call: shop user=ada, expect: allowed}, {advance: 1s, call: {domain: a, descriptors: [{}]}}]}]")
	f.Fuzz(func(t *testing.T, text string) {
		file, problems := parseTestFile("f", []byte(text))
		if len(problems) == 0 && len(file.Cases) == 0 {
			t.Error("a file without cases is no mistake")
		}
	})
}
