package envoytest_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/test/envoytest"
)

// recipe is traffic for a file of examples/recipes. The descriptor has a key for each header that is sent.
type recipe struct {
	file, domain string
	keys         []string
	more         []string // keys of a descriptor each
	steps        []recipeStep
}

// recipeStep is requests with headers, as "key=value key=value", and the status of the last one.
type recipeStep struct {
	headers  string
	requests int
	code     int
}

func recipes() []recipe {
	return []recipe{
		{"addresses.yaml", "web", []string{"address", "plan", "user"}, nil, []recipeStep{
			{"address=203.0.113.9", 20, 200},
			{"address=203.0.113.9", 1, 429},
			{"address=2001:db8:1:2::1", 20, 200},
			{"address=2001:db8:1:2::f", 1, 429},
			{"address=203.0.113.9 plan=paid user=ada", 90, 200},
			{"address=10.0.0.1", 120, 200},
		}},
		{"lists.yaml", "shop", []string{"user"}, []string{"address"}, []recipeStep{
			{"user=mallory", 1, 429}, {"user=bot-9", 1, 429}, {"user=ada", 10, 200}, {"user=ada", 1, 429}, {"user=ada address=198.51.100.7", 20, 200}, {"user=mallory address=198.51.100.7", 1, 200},
		}},
		{"routes.yaml", "api", []string{"user", "method", "path"}, nil, []recipeStep{
			{"user=ada method=PUT path=/files/1", 1, 200}, {"user=ada method=POST path=/files/1", 1, 429}, {"user=eve method=GET path=/search?q", 5, 200}, {"user=eve method=GET path=/search?q", 1, 429},
		}},
		{"day.yaml", "reports", []string{"customer"}, nil, []recipeStep{{"customer=acme", 1000, 200}, {"customer=acme", 1, 429}, {"customer=other", 1, 200}}},
		{"reference.yaml", "mongo_cps", []string{"database"}, nil, []recipeStep{{"database=default", 3, 200}, {"database=other", 9, 200}}},
		{"shadow.yaml", "shop", []string{"user"}, nil, []recipeStep{{"user=ada", 60, 200}}},
	}
}

// Each recipe does behind Envoy what its page says. TestInFlightExample starts the one for requests in flight.
// The recipes for language models need what a response says: the files llm-*.yaml have that.
func TestRecipesBehindEnvoy(t *testing.T) {
	envoytest.Need(t)
	root, err := envoytest.Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range recipes() {
		t.Run(r.file, func(t *testing.T) {
			envoy, _ := startAll(t, r.envoy(t), filepath.Join(root, "examples", "recipes", r.file))
			for _, step := range r.steps {
				header := http.Header{}
				for h := range strings.FieldsSeq(step.headers) {
					key, value, _ := strings.Cut(h, "=")
					header.Set("x-"+key, value)
				}
				for i := range step.requests {
					if got := envoy.Get(t, "/", header); got.Code != step.code {
						t.Fatalf("%s, request %d: got %d, want %d", step.headers, i+1, got.Code, step.code)
					}
				}
			}
		})
	}
}

// envoy returns the configuration basic.yaml with the descriptors of the recipe.
func (r *recipe) envoy(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(patient(t, example(t, "basic.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	const one = "                      - request_headers: {header_name: x-api-key, descriptor_key: api_key}\n"
	action := func(key string, optional bool) string {
		return fmt.Sprintf("                      - request_headers: {header_name: x-%s, descriptor_key: %s, skip_if_absent: %t}\n", key, key, optional)
	}
	var actions strings.Builder
	for i, key := range r.keys {
		actions.WriteString(action(key, i > 0))
	}
	for _, key := range r.more {
		actions.WriteString("                    - actions:\n" + action(key, false))
	}
	text = bytes.Replace(text, []byte(one), []byte(actions.String()), 1)
	text = bytes.Replace(text, []byte("domain: basic\n"), []byte("domain: "+r.domain+"\n"), 1)
	file := filepath.Join(t.TempDir(), "envoy.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
