package operate_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// page returns a file of the repository.
func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// mustSay reports each of some texts that a page lacks, wherever its lines break.
func mustSay(t *testing.T, name string, texts ...string) {
	t.Helper()
	text := strings.Join(strings.Fields(page(t, name)), " ")
	for _, want := range texts {
		if !strings.Contains(text, want) {
			t.Errorf("%s does not say %q", name, want)
		}
	}
}

// The roles of docs/configuration.md are those of the service's own document of its API.
func TestRolesOfThePage(t *testing.T) {
	mustSay(t, "docs/configuration.md",
		"`read` may read all but secrets, and ask `/v1/explain`",
		"`operate` may do the same, change balances, and disable or enable entities, resources and namespaces",
		"`administer` may do all: also change entities, limits and the states of namespaces, `GET /v1/backup` and `POST /v1/restore`")
	s := startService(t, `
log: {format: json}
drain: 0s
domains:
- {domain: shop, rules: [{name: users, match: {user: "*"}, entity: "user/{user}", resource: api, limits: {rpm: 2/minute}, consume: {rpm: hits}}]}
`, "--data", "data")
	var document struct {
		Paths map[string]map[string]struct {
			Description string `json:"description"`
		} `json:"paths"`
	}
	err := json.Unmarshal([]byte(s.run(t, "curl -s --unix-socket data/admin.sock http://localhost/v1/openapi.json")), &document)
	if err != nil || len(document.Paths) < 10 {
		t.Fatalf("%d paths, %v", len(document.Paths), err)
	}
	for path, methods := range document.Paths {
		for method, endpoint := range methods {
			want := "administer"
			switch {
			case method == "get":
				want = "read"
			case strings.Contains(path, "/buckets/") || strings.Contains(path, "/disabled/"):
				want = "operate"
			}
			if !strings.Contains(endpoint.Description, "Needs the role "+want+".") {
				t.Errorf("%s %s: %q, want the role %s as the page has it", method, path, endpoint.Description, want)
			}
		}
	}
}

// The forms of files of envoyproxy/ratelimit that docs/configuration.md says are read, are.
func TestFormsThatAreRead(t *testing.T) {
	const limit = "rate_limit: {unit: second, requests_per_unit: 1}"
	p := newPlace(t)
	mustSay(t, "docs/configuration.md", "`value:` or `rate_limit:` with nothing behind it, a `name` beside the key and a number as `key` are read too")
	for _, descriptors := range []string{
		"- {key: k, name: n, " + limit + "}\n", "- key: k\n  value:\n  " + limit + "\n", "- key: k\n  rate_limit:\n", "- {key: 5, " + limit + "}\n",
	} {
		p.write(t, "limits.yaml", "domain: d\ndescriptors:\n"+descriptors)
		if got := p.shell(t, "ratelimit check --rules limits.yaml; echo $?"); !strings.HasSuffix(got, "\n0\n") {
			t.Errorf("%s: got %q, want 0", descriptors, got)
		}
	}
	mustSay(t, "docs/configuration.md", "A file of an included directory counts if its name ends in `.yaml` or `.yml`, or with `all_files`")
	for name, want := range map[string]string{"limits": "d: leads to no file whose name ends in .yaml or .yml", "limits.yml": "1 domain, "} {
		p.write(t, name, "domain: d\ndescriptors: [{key: k, "+limit+"}]\n")
		if got := p.shell(t, "mkdir d && mv "+name+" d && ratelimit check --rules d; rm -r d"); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// The mistakes that docs/configuration.md shows are reported as it has them.
func TestMistakesOfThePage(t *testing.T) {
	p := newPlace(t)
	p.write(t, "ratelimit.yaml", "limits:\n  system:\n    rpm: 600\ndomains:\n- domain: d\n  rules:\n  - name: a\n    entity: e\n    resuorce: r\n    match: {a: b}\n    consume: {rpm: 1}\n")
	got := p.shell(t, "ratelimit check")
	shown := regexp.MustCompile(`(?m)^    (ratelimit\.yaml:\d+: .*?)( \(known here: …\))?$`).FindAllStringSubmatch(page(t, "docs/configuration.md"), -1)
	if len(shown) != 2 {
		t.Fatalf("docs/configuration.md shows %d mistakes, want 2", len(shown))
	}
	for _, m := range shown {
		if !strings.Contains(got, m[1]) {
			t.Errorf("docs/configuration.md shows\n%s\nand the program says\n%v", m[1], got)
		}
	}
}

// Envoy's own headers are off in the examples, but in the shapes that docs/headers.md names.
func TestHeadersOfEnvoyAreOff(t *testing.T) {
	mustSay(t, "docs/headers.md", "but for the shapes of gateways that turn it on")
	files, err := filepath.Glob("../../examples/*/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	for _, file := range files {
		on := regexp.MustCompile(`(?m)^\s*enable_x_ratelimit_headers: DRAFT`).MatchString(page(t, strings.TrimPrefix(file, "../../")))
		if on && !strings.HasPrefix(filepath.Base(file), "shape-") {
			t.Errorf("%s has Envoy send x-ratelimit-*", file)
		}
	}
}

// The page of the Kustomize example names the settings that count at a start, as
// docs/configuration.md does.
func TestKustomizeNamesSettingsOfTheStart(t *testing.T) {
	var sentence string
	for line := range strings.Lines(page(t, "docs/configuration.md")) {
		if strings.Contains(line, "take effect when the program is restarted") {
			sentence, _, _ = strings.Cut(line, " take effect")
		}
	}
	names := regexp.MustCompile("`[a-z._]+`").FindAllString(sentence, -1)
	if len(names) < 5 {
		t.Fatalf("docs/configuration.md names %q", names)
	}
	mustSay(t, "examples/kustomize/README.md", names...)
}
