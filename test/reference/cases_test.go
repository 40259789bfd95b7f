package reference_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"gopkg.in/yaml.v3"
)

// testCase is a file of rules and calls.
type testCase struct {
	Name   string            `yaml:"name"`
	Readme int               `yaml:"readme"` // the number of the block of YAML in its README, from 1
	File   string            `yaml:"file"`   // in its module
	Rules  string            `yaml:"rules"`
	Env    map[string]string `yaml:"env"`
	Calls  []testCall        `yaml:"calls"`
}

type testCall struct {
	Call    string `yaml:"call"`
	Differs string `yaml:"differs"`
}

// UnmarshalYAML reads a call alone, or with the reason for a difference.
func (c *testCall) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		return n.Decode(&c.Call)
	}
	type plain testCall
	return n.Decode((*plain)(c))
}

func readCases(t *testing.T) (cases []testCase) {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", "cases.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	decoder := yaml.NewDecoder(file)
	decoder.KnownFields(true)
	if err := decoder.Decode(&cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

var blocks = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// rules returns the rules of a case.
func (c *testCase) rules(t *testing.T, module string) string {
	t.Helper()
	switch {
	case c.Readme > 0:
		text := read(t, filepath.Join(module, "README.md"))
		return blocks.FindAllStringSubmatch(text, -1)[c.Readme-1][1]
	case c.File != "":
		return read(t, filepath.Join(module, filepath.FromSlash(c.File)))
	default:
		return c.Rules
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// request returns the request of a call.
func (c *testCall) request(t *testing.T) *rlsv3.RateLimitRequest {
	t.Helper()
	words := strings.Fields(c.Call)
	r := &rlsv3.RateLimitRequest{Domain: words[0]}
	for _, word := range words[1:] {
		if number, ok := strings.CutPrefix(word, "hits="); ok {
			n, err := strconv.ParseUint(number, 10, 32)
			if err != nil {
				t.Fatal(err)
			}
			r.HitsAddend = uint32(n)
			continue
		}
		if word == "+" {
			continue
		}
		d := new(commonv3.RateLimitDescriptor)
		for entry := range strings.SplitSeq(word, ",") {
			key, value, ok := strings.Cut(entry, "=")
			if !ok {
				t.Fatalf("%s: %q is no entry", c.Call, entry)
			}
			d.Entries = append(d.Entries, &commonv3.RateLimitDescriptor_Entry{Key: key, Value: value})
		}
		r.Descriptors = append(r.Descriptors, d)
	}
	return r
}

// answerText writes an answer in one line, without times, which differ.
func answerText(r *rlsv3.RateLimitResponse, err error) string {
	if err != nil {
		return "error"
	}
	parts := []string{r.GetOverallCode().String() + ":"}
	for _, s := range r.GetStatuses() {
		text := s.GetCode().String()
		if l := s.GetCurrentLimit(); l != nil {
			text += " " + strconv.Itoa(int(l.GetRequestsPerUnit())) + "/" + l.GetUnit().String()
			if l.GetName() != "" {
				text += " name=" + l.GetName()
			}
		}
		text += " left=" + strconv.FormatUint(uint64(s.GetLimitRemaining()), 10)
		if s.GetDurationUntilReset() != nil {
			text += " reset"
		}
		parts = append(parts, "["+text+"]")
	}
	for _, h := range r.GetResponseHeadersToAdd() {
		value := h.GetValue()
		if strings.HasSuffix(h.GetKey(), "Reset") {
			value = "SECONDS"
		}
		parts = append(parts, h.GetKey()+"="+value)
	}
	return strings.Join(parts, " ")
}
