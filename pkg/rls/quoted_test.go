package rls_test

import (
	"fmt"
	"strings"
	"testing"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// statusText writes a status as "OK 5/hour name=n left=4 reset".
func statusText(s *rlsv3.RateLimitResponse_DescriptorStatus) string {
	text := s.GetCode().String()
	if l := s.GetCurrentLimit(); l != nil {
		text += fmt.Sprintf(" %d/%s", l.GetRequestsPerUnit(), strings.ToLower(l.GetUnit().String()))
		if l.GetName() != "" {
			text += " name=" + l.GetName()
		}
	}
	if n := s.GetLimitRemaining(); n > 0 {
		text += fmt.Sprintf(" left=%d", n)
	}
	if s.GetDurationUntilReset() != nil {
		text += " reset"
	}
	return text
}

// file is the descriptors of a file with every kind of limit.
func file() []descriptor.TreeSpec {
	named := perHour("named", 5)
	named.Limit.Name = "n"
	replaces := perHour("replaces", 9)
	replaces.Limit.Replaces = []string{"n"}
	shadow := perHour("shadow", 2)
	shadow.Shadow = true
	nothing := perHour("nothing", 0)
	nothing.Limit.Name = "none"
	hidden := nothing
	hidden.Path, hidden.Key, hidden.Shadow = "hidden", "hidden", true
	return []descriptor.TreeSpec{
		perHour("user", 5), named, replaces, shadow, nothing, hidden,
		{Path: "free", Key: "free"},
		{Path: "any", Key: "any", Limit: &descriptor.TreeLimitSpec{Unlimited: true}},
		quotaPerHour("quota", 3),
	}
}

// Statuses are those of envoyproxy/ratelimit: each descriptor has its limit, whatever happened to the others.
func TestStatusesOfAFile(t *testing.T) {
	t.Parallel()
	e := newTree(t, file()...)
	for _, step := range []struct{ calls, want string }{
		{"user", "OK: OK 5/hour left=4 reset"},
		{"named", "OK: OK 5/hour name=n left=4 reset"},
		{"named replaces", "OK: OK, OK 9/hour left=8 reset"},
		{"free", "OK: OK"},
		{"any", "OK: OK left=4294967295"},
		{"unknown", "OK: OK"},
		{"shadow", "OK: OK 2/hour left=1 reset"},
		{"shadow", "OK: OK 2/hour reset"},
		{"shadow user", "OK: OK 2/hour reset, OK 5/hour left=3 reset"},
		{"nothing user", "OVER_LIMIT: OVER_LIMIT 0/hour name=none reset, OK 5/hour left=3 reset"},
		{"nothing shadow", "OVER_LIMIT: OVER_LIMIT 0/hour name=none reset, OK 2/hour reset"},
		{"hidden user", "OK: OK 0/hour name=none reset, OK 5/hour left=2 reset"},
		{"user user", "OK: OK 5/hour left=1 reset, OK 5/hour reset"},
		{"user=0", "OK: OK 5/hour reset"},
		{"user quota", "OVER_LIMIT: OVER_LIMIT 5/hour reset, OK 3/hour left=3 reset"},
		{"user named", "OVER_LIMIT: OVER_LIMIT 5/hour reset, OK 5/hour name=n left=4 reset"},
		{"named=9 user any free", "OVER_LIMIT: OVER_LIMIT 5/hour name=n reset, OVER_LIMIT 5/hour reset, OK left=4294967295, OK"},
		{"quota=0", "OK: OK 3/hour left=3 reset"},
		{"quota=9 named", "OVER_LIMIT: OVER_LIMIT 3/hour reset, OVER_LIMIT 5/hour name=n reset"},
	} {
		calls := strings.Fields(step.calls)
		all := make([]string, 0, len(calls))
		for _, call := range calls {
			key, number, given := strings.Cut(call, "=")
			if given {
				number = `,"hitsAddend":"` + number + `"`
			}
			all = append(all, hits(key, "v", number))
		}
		answer := e.askEnvoy(t, strings.Join(all, ","))
		texts := make([]string, 0, len(answer.GetStatuses()))
		for _, s := range answer.GetStatuses() {
			texts = append(texts, statusText(s))
		}
		if got := answer.GetOverallCode().String() + ": " + strings.Join(texts, ", "); got != step.want {
			t.Errorf("%s:\ngot  %s\nwant %s", step.calls, got, step.want)
		}
		if len(answer.GetResponseHeadersToAdd()) > 0 {
			t.Errorf("%s: headers %v, want none", step.calls, answer.GetResponseHeadersToAdd())
		}
	}
}

// The settings of the whole service: headers of the limit with the fewest requests left, shadow mode, quota mode.
func TestOptionsOfFiles(t *testing.T) {
	t.Parallel()
	e := newTree(t, file()...)
	var options rls.Options
	options.Files.Headers.Limit, options.Files.Headers.Remaining, options.Files.Headers.Reset = "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"
	reload := func() {
		e.service.Reload(compile(t, []descriptor.DomainSpec{{Path: "p", Domain: "envoy", Tree: file()}}), &options)
	}
	reload()
	headers := func(step, descriptors, want string) {
		t.Helper()
		sent := e.askEnvoy(t, descriptors).GetResponseHeadersToAdd()
		texts := make([]string, 0, len(sent))
		for _, h := range sent {
			texts = append(texts, h.GetKey()+"="+h.GetValue())
		}
		if got := strings.Join(texts, " "); got != want {
			t.Errorf("%s: got %q, want %q", step, got, want)
		}
	}
	headers("the fewest left", hits("replaces", "v", "")+","+hits("user", "v", "")+","+hits("any", "v", ""), "RateLimit-Limit=5 RateLimit-Remaining=4 RateLimit-Reset=720")
	headers("without a limit", hits("free", "v", "")+","+hits("any", "v", ""), "")
	headers("over", hits("user", "v", explicit(5))+","+hits("named", "v", ""), "RateLimit-Limit=5 RateLimit-Remaining=0 RateLimit-Reset=4320")

	options.Files.Shadow = true
	reload()
	answer := e.wantCode(t, "the whole service in shadow mode", hits("user", "v", explicit(5)), isOK, 0)
	if got := answer.GetStatuses()[0].GetCode(); got != isOver {
		t.Errorf("status of a call that shadow mode admits: got %v", got)
	}

	options.Files.Shadow, options.Files.Quota = false, true
	reload()
	e.wantCode(t, "one of two is over", hits("user", "v", explicit(5))+","+hits("named", "v", ""), isOK)
	e.wantCode(t, "one without a limit is not over", hits("user", "v", explicit(5))+","+hits("unknown", "v", ""), isOK)
	e.wantCode(t, "all are over", hits("user", "v", explicit(5)), isOver)
}

// With metadata of rules an answer has what was asked, and the metadata of the rules of admitted descriptors: the
// first one wins, and mappings are merged.
func TestMetadataOfFiles(t *testing.T) {
	t.Parallel()
	with := func(key string, requests uint32, metadata map[string]any) descriptor.TreeSpec {
		s := perHour(key, requests)
		s.Metadata = metadata
		return s
	}
	tree := []descriptor.TreeSpec{
		with("a", 5, map[string]any{"service": "one", "deep": map[string]any{"x": 1}}),
		with("b", 5, map[string]any{"service": "two", "deep": map[string]any{"x": 2, "y": true}, "list": []any{"l"}}),
		with("none", 0, map[string]any{"denied": true}),
	}
	e := newEnv(t, nil)
	answer := func(metadata rls.FileMetadata, descriptors string) map[string]any {
		var options rls.Options
		options.Files.Metadata = metadata
		e.service.Reload(compile(t, []descriptor.DomainSpec{{Path: "p", Domain: "envoy", Tree: tree}}), &options)
		return e.askEnvoy(t, descriptors).GetDynamicMetadata().AsMap()
	}
	both := hits("a", "1", "") + "," + hits("b", "2", explicit(2)) + "," + hits("none", "3", "")
	want := map[string]any{
		"domain": "envoy",
		"descriptors": []any{
			map[string]any{"entries": []any{"a=1"}}, map[string]any{"entries": []any{"b=2"}, "hitsAddend": 2.0}, map[string]any{"entries": []any{"none=3"}},
		},
		"metadata": map[string]any{"service": "one", "deep": map[string]any{"x": 1.0, "y": true}, "list": []any{"l"}},
	}
	for range 2 { // the metadata of the rules stays as it is
		if diff := cmp.Diff(want, answer(rls.RulesMetadata, both)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if got := answer(rls.NoMetadata, both); len(got) > 0 {
		t.Errorf("without metadata: got %v", got)
	}
	if got := answer(rls.OwnMetadata, both); got["reason"] == nil {
		t.Errorf("with our own metadata: got %v", got)
	}
}

// The metrics of that service count hits by the parts of the limit that they fill, by the first two levels of the file.
func TestMetricsOfFiles(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	e := newEnv(t, func(c *rls.Config) { c.FileRegisterer = registry })
	deep := perHour("below", 9)
	deep.Path, deep.Value = "deep", "v"
	shadow := perHour("shadow", 2)
	shadow.Shadow = true
	e.service.Reload(compile(t, []descriptor.DomainSpec{{Path: "p", Domain: "envoy", Tree: []descriptor.TreeSpec{
		perHour("user", 10), {Path: "up", Key: "up", Children: []descriptor.TreeSpec{deep}}, shadow,
	}}}), nil)
	for _, n := range []int{7, 4, 1, 2} { // 7 of 10; 4 are too many; up to 10
		e.askEnvoy(t, hits("user", "a", explicit(n)))
	}
	e.askEnvoy(t, `{"entries":[{"key":"up","value":"x"},{"key":"below","value":"v"}]}`)
	e.askEnvoy(t, hits("shadow", "s", explicit(3)))
	of := func(kind, keys string) string {
		return "ratelimit_service_rate_limit_" + kind + `{domain="envoy",` + keys + "}"
	}
	const user, below, hidden = `key1="user",key2=""`, `key1="up",key2="below_v"`, `key1="shadow",key2=""`
	got := series(t, registry)
	for name, want := range map[string]float64{
		of("total_hits", user): 14, of("within_limit", user): 10, of("over_limit", user): 1, of("near_limit", user): 2 + 2,
		of("total_hits", below): 1, of("within_limit", below): 1, of("shadow_mode", hidden): 3,
		`ratelimit_service_total_requests{grpc_method="ShouldRateLimit"}`: 6,
	} {
		if got[name] != want {
			t.Errorf("%s: got %v, want %v", name, got[name], want)
		}
	}
	e.service.Reload(nil, nil)
	if after := series(t, registry); len(after) >= len(got) {
		t.Errorf("series of rules that are gone stay: %v", after)
	}
}
