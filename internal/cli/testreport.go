package cli

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// testSuite is a file and the outcome of its cases.
type testSuite struct {
	File    *testFile
	Results []testResult
}

// countFailed counts the cases that failed, of all suites.
func countFailed(suites []testSuite) (failed, cases, calls int) {
	for _, s := range suites {
		for _, r := range s.Results {
			cases++
			calls += r.Calls
			if r.Fail != nil {
				failed++
			}
		}
	}
	return failed, cases, calls
}

// writeTestText writes the outcome for people.
func writeTestText(w io.Writer, suites []testSuite) error {
	var b strings.Builder
	for _, s := range suites {
		for _, r := range s.Results {
			status := "ok  "
			if r.Fail != nil {
				status = "FAIL"
			}
			fmt.Fprintf(&b, "%s  %s:%d  %s\n", status, s.File.Name, r.Case.Line, r.Case.Name)
			if r.Fail != nil {
				for line := range strings.Lines(r.Fail.text(s.File.Name)) {
					b.WriteString("      " + line)
				}
			}
		}
	}
	failed, cases, calls := countFailed(suites)
	fmt.Fprintf(&b, "%d cases, %d failed, %d calls\n", cases, failed, calls)
	_, err := io.WriteString(w, b.String())
	return err
}

// text describes a failure: the call, and then each member with - the expected and + the
// real value.
func (f *testFailure) text(file string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d: %s", file, f.Line, f.Call)
	if f.Of > 1 {
		fmt.Fprintf(&b, ", call %d of %d", f.Nth, f.Of)
	}
	fmt.Fprintf(&b, ", after %v\n", f.At)
	if f.Error != "" {
		fmt.Fprintf(&b, "error: %s\n", f.Error)
	}
	for _, m := range f.Wrong {
		if m.Want == "" {
			fmt.Fprintf(&b, "  %s: %s\n", m.Member, m.Got)
			continue
		}
		fmt.Fprintf(&b, "- %s: %s\n", m.Member, m.Want)
		if m.Got != "" {
			fmt.Fprintf(&b, "+ %s: %s\n", m.Member, m.Got)
		}
	}
	return b.String()
}

// message describes a failure in a line.
func (f *testFailure) message() string {
	if f.Error != "" {
		return f.Error
	}
	m := f.Wrong[0]
	return m.Member + " is " + m.Got + ", not " + m.Want
}

// writeTAP writes the outcome in version 13 of the Test Anything Protocol.
func writeTAP(w io.Writer, suites []testSuite) error {
	var b strings.Builder
	_, cases, _ := countFailed(suites)
	fmt.Fprintf(&b, "TAP version 13\n1..%d\n", cases)
	n := 0
	for _, s := range suites {
		for _, r := range s.Results {
			n++
			status := "ok"
			if r.Fail != nil {
				status = "not ok"
			}
			fmt.Fprintf(&b, "%s %d - %s:%d %s\n", status, n, s.File.Name, r.Case.Line, strings.NewReplacer("#", `\#`, "\n", " ").Replace(r.Case.Name))
			if r.Fail == nil {
				continue
			}
			for line := range strings.Lines(r.Fail.text(s.File.Name)) {
				b.WriteString("# " + line)
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	File    string        `xml:"file,attr"`
	Line    int           `xml:"line,attr"`
	Failure *junitFailure `xml:"failure"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// writeJUnit writes the outcome as the XML of JUnit, which continuous integration reads.
func writeJUnit(w io.Writer, suites []testSuite) error {
	var out junitSuites
	for _, s := range suites {
		one := junitSuite{Name: s.File.Name}
		for _, r := range s.Results {
			c := junitCase{Name: r.Case.Name, Class: s.File.Name, File: s.File.Name, Line: r.Case.Line}
			if f := r.Fail; f != nil {
				one.Failures++
				c.Failure = &junitFailure{Message: f.message(), Text: f.text(s.File.Name)}
			}
			one.Cases = append(one.Cases, c)
		}
		one.Tests = len(one.Cases)
		out.Suites = append(out.Suites, one)
	}
	text, err := xml.MarshalIndent(out, "", "  ")
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, xml.Header+string(text)+"\n")
	return err
}
