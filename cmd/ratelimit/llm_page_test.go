package main

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"gopkg.in/yaml.v3"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// llmExample is the configuration of examples/llm.
const llmExample = "../../examples/llm/ratelimit.yaml"

// llmPage returns docs/llm-gateways.md.
func llmPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/llm-gateways.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// example is a pair of the page: rules, and the route of Envoy that asks them, if
// there is one.
type example struct {
	section  string
	rules    string
	route    *llmRoute
	complete string // the file of examples/envoy that the section links to first
}

// llmExamples returns the examples of the page. Every block of YAML is a whole
// configuration, or the part of an Envoy route about the filter.
func llmExamples(t *testing.T) []example {
	t.Helper()
	var all []example
	for _, section := range strings.Split(llmPage(t), "\n## ")[1:] {
		title, _, _ := strings.Cut(section, "\n")
		for _, m := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(section, -1) {
			if !strings.HasPrefix(m[1], "typed_per_filter_config:") {
				all = append(all, example{section: title, rules: m[1]})
				continue
			}
			if last := len(all) - 1; last < 0 || all[last].section != title || all[last].route != nil {
				t.Fatalf("%s: the route of Envoy comes without rules", title)
			}
			last := &all[len(all)-1]
			last.route = readLLMRoute(t, m[1])
			if file := regexp.MustCompile(`examples/envoy/(llm-[a-z-]+\.yaml)`).FindStringSubmatch(section); file != nil {
				last.complete = file[1]
			}
		}
	}
	return all
}

// llmRoute is the part of the page's routes about the filter; all else is a mistake.
type llmRoute struct {
	Filters struct {
		RateLimit struct {
			Type       string         `yaml:"@type"`
			RateLimits []llmRateLimit `yaml:"rate_limits"`
		} `yaml:"envoy.filters.http.ratelimit"`
	} `yaml:"typed_per_filter_config"`
}

// llmRateLimit is a descriptor that Envoy makes.
type llmRateLimit struct {
	Actions []struct {
		GenericKey *struct {
			Key   string `yaml:"descriptor_key"`
			Value string `yaml:"descriptor_value"`
		} `yaml:"generic_key"`
		RequestHeaders *struct {
			Name string `yaml:"header_name"`
			Key  string `yaml:"descriptor_key"`
		} `yaml:"request_headers"`
		Metadata *struct {
			Key string `yaml:"descriptor_key"`
			At  struct {
				Namespace string `yaml:"key"`
				Path      []struct {
					Key string `yaml:"key"`
				} `yaml:"path"`
			} `yaml:"metadata_key"`
		} `yaml:"metadata"`
	} `yaml:"actions"`
	Hits *struct {
		Number   *uint64 `yaml:"number"`
		Format   string  `yaml:"format"`
		Negative bool    `yaml:"is_negative_hits"`
	} `yaml:"hits_addend"`
	After bool `yaml:"apply_on_stream_done"`
}

func readLLMRoute(t *testing.T, text string) *llmRoute {
	t.Helper()
	out := new(llmRoute)
	decoder := yaml.NewDecoder(strings.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(out); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return out
}

// A route of the page is the one of the configuration that its section links to first,
// which test/envoytest starts with a real Envoy.
func TestRoutesOfTheLLMPageAreTested(t *testing.T) {
	t.Parallel()
	for _, e := range llmExamples(t) {
		if e.route == nil {
			continue
		}
		file, err := os.ReadFile("../../examples/envoy/" + e.complete)
		if err != nil {
			t.Errorf("%s: %v", e.section, err)
			continue
		}
		const key = "typed_per_filter_config:\n"
		_, rest, _ := strings.Cut(string(file), key)
		rest, _, _ = strings.Cut(rest, "\n  clusters:\n")
		want := readLLMRoute(t, key+rest)
		if diff := cmp.Diff(want, e.route); diff != "" {
			t.Errorf("%s: the route of the page is not that of %s (-file +page):\n%s", e.section, e.complete, diff)
		}
	}
}

// wantNoWarnings checks that an example can be copied without a warning.
func wantNoWarnings(t *testing.T, name string, cfg *config.Config) {
	t.Helper()
	for _, w := range cfg.Warnings {
		t.Errorf("%s: warning: %v", name, w.Text)
	}
}

func TestExamplesOfTheLLMPageLoad(t *testing.T) {
	t.Parallel()
	all, routes := llmExamples(t), 0
	for _, e := range all {
		cfg, err := config.Parse("page.yaml", []byte(e.rules), nil)
		if err != nil {
			t.Errorf("%s: %v in\n%s", e.section, err, e.rules)
			continue
		}
		wantNoWarnings(t, e.section, cfg)
		if e.route != nil {
			routes++
		}
	}
	if len(all) < 5 || routes < 3 {
		t.Errorf("got %d configurations and %d routes, want at least 5 and 3", len(all), routes)
	}
}

func TestExampleOfTheLLMGateway(t *testing.T) {
	t.Parallel()
	cfg, err := config.Load(llmExample, config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	wantNoWarnings(t, llmExample, cfg)
}

// Every metric that the page recommends exists, with the labels that it names: in a
// service with a table, which registers most.
func TestMetricsOfTheLLMPageExist(t *testing.T) {
	synctest.Test(t, wantMetricsOfTheLLMPage)
}

func wantMetricsOfTheLLMPage(t *testing.T) {
	r := startReplica(t, newTable(t), programtest.TwoPerMinute)
	defer r.stop()
	described := make(chan *prometheus.Desc)
	go func() { r.Registry.Describe(described); close(described) }()
	pattern := regexp.MustCompile(`fqName: "([^"]+)".*constLabels: \{([^}=]*).*variableLabels: \{([^}]*)\}`)
	known := map[string]string{}
	for d := range described {
		m := pattern.FindStringSubmatch(d.String())
		known[m[1]] = m[2] + "," + m[3]
	}
	found := regexp.MustCompile(`(ratelimit_[a-z_]+)(?:\{([a-z_]+)=)?`).FindAllStringSubmatch(llmPage(t), -1)
	for _, m := range found {
		labels, ok := known[m[1]]
		if !ok {
			t.Errorf("%s: no such metric; there are %v", m[1], slices.Sorted(maps.Keys(known)))
		} else if m[2] != "" && !slices.Contains(strings.Split(labels, ","), m[2]) {
			t.Errorf("%s has no label %s, only %s", m[1], m[2], labels)
		}
	}
	if len(found) < 8 {
		t.Errorf("metrics on the page: got %d, want more", len(found))
	}
}
