package main

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/ratelimit/ratelimit/internal/server"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// metadataOfFilter is where Envoy puts the dynamic metadata of the service's answers.
const metadataOfFilter = "envoy.filters.http.ratelimit"

// stream is a request on its way through a gateway that follows a route as Envoy
// does: test/envoytest shows the same with Envoy itself.
type stream struct {
	service  *server.Service
	route    *llmRoute
	headers  map[string]string
	metadata map[string]map[string]string // by namespace and key
}

// call makes the call before the request, or the one after it; none, and nil, when
// no descriptor has all that it needs.
func (s *stream) call(t *testing.T, after bool) *rls.RateLimitResponse {
	t.Helper()
	var all []*common.RateLimitDescriptor
	for _, l := range s.route.Filters.RateLimit.RateLimits {
		if d, ok := s.descriptor(t, &l); ok && l.After == after {
			all = append(all, d)
		}
	}
	if len(all) == 0 {
		return nil
	}
	answer := s.ask(t, all)
	for key, value := range answer.GetDynamicMetadata().AsMap() {
		if s.metadata[metadataOfFilter] == nil {
			s.metadata[metadataOfFilter] = map[string]string{}
		}
		switch v := value.(type) {
		case string:
			s.metadata[metadataOfFilter][key] = v
		case float64:
			s.metadata[metadataOfFilter][key] = strconv.FormatFloat(v, 'f', -1, 64)
		}
	}
	return answer
}

// descriptor makes a descriptor, and reports false where Envoy makes none.
func (s *stream) descriptor(t *testing.T, l *llmRateLimit) (*common.RateLimitDescriptor, bool) {
	t.Helper()
	d := new(common.RateLimitDescriptor)
	for _, a := range l.Actions {
		key, value := "", ""
		switch {
		case a.GenericKey != nil:
			key, value = a.GenericKey.Key, a.GenericKey.Value
		case a.RequestHeaders != nil:
			key, value = a.RequestHeaders.Key, s.headers[a.RequestHeaders.Name]
		case a.Metadata != nil:
			key, value = a.Metadata.Key, s.metadata[a.Metadata.At.Namespace][a.Metadata.At.Path[0].Key]
		}
		if value == "" {
			return nil, false
		}
		d.Entries = append(d.Entries, &common.RateLimitDescriptor_Entry{Key: key, Value: value})
	}
	switch {
	case l.Hits == nil:
		return d, true
	case l.Hits.Number != nil:
		d.HitsAddend, d.IsNegativeHits = wrapperspb.UInt64(*l.Hits.Number), l.Hits.Negative
		return d, true
	}
	m := regexp.MustCompile(`^%DYNAMIC_METADATA\(([^:]+):([^:]+)\)%$`).FindStringSubmatch(l.Hits.Format)
	if m == nil {
		t.Fatalf("a format that this test does not know: %s", l.Hits.Format)
	}
	n, err := strconv.ParseUint(s.metadata[m[1]][m[2]], 10, 64)
	d.HitsAddend, d.IsNegativeHits = wrapperspb.UInt64(n), l.Hits.Negative
	return d, err == nil
}

// ask makes a call, to the only domain there is.
func (s *stream) ask(t *testing.T, all []*common.RateLimitDescriptor) *rls.RateLimitResponse {
	t.Helper()
	domain := s.service.InForce.Load().Rules.Domains()[0].Name()
	body, err := protojson.Marshal(&rls.RateLimitRequest{Domain: domain, Descriptors: all})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/json", strings.NewReader(string(body)))
	r.Host = "localhost"
	r.Header.Set("Content-Type", "application/json")
	s.service.Handler().ServeHTTP(w, r)
	answer := new(rls.RateLimitResponse)
	if err := protojson.Unmarshal(w.Body.Bytes(), answer); err != nil {
		t.Fatalf("%d: %v in %s", w.Code, err, w.Body)
	}
	return answer
}

// left returns how many tokens the request's key has left.
func (s *stream) left(t *testing.T) uint32 {
	t.Helper()
	first := s.route.Filters.RateLimit.RateLimits[0]
	first.Hits = nil
	d, ok := s.descriptor(t, &first)
	if !ok {
		t.Fatal("the first descriptor of the route lacks an entry")
	}
	d.HitsAddend = wrapperspb.UInt64(0)
	for _, status := range s.ask(t, []*common.RateLimitDescriptor{d}).GetStatuses() {
		if status.GetCurrentLimit().GetName() == "tpm" {
			return status.GetLimitRemaining()
		}
	}
	t.Fatal("nothing is said of the limit tpm")
	return 0
}

// Each way of the page, by its own rules and its own route: the amount taken before
// the request, and the remaining amount after it. This includes a denied request, one
// of unknown usage, and one that used more than estimated.
func TestWaysOfTheLLMPage(t *testing.T) {
	t.Parallel()
	type step struct {
		estimate, used string // "" = there is none
		before, after  uint32 // remaining of 100,000
		denied         bool
	}
	want := map[string][]step{
		"Charge after": {
			{"", "400", 100_000, 99_600, false},
			{"", "", 99_600, 99_600, false},
			{"", "100000", 99_600, 0, false},
			{"", "", 0, 0, true},
		},
		"Reserve and settle by id": {
			{"1000", "400", 99_000, 99_600, false},
			{"1000", "0", 98_600, 99_600, false},
			{"1000", "", 98_600, 98_600, false},
			{"98601", "", 98_600, 98_600, true},
			{"600", "99000", 98_000, 0, false},
			{"1", "", 0, 0, true},
		},
		"Refund and charge": {
			{"1000", "400", 99_000, 99_600, false},
			{"1000", "0", 98_600, 99_600, false},
			{"1000", "", 98_600, 99_600, false},
			{"99601", "", 99_600, 99_600, true},
			{"600", "100000", 99_000, 0, false},
			{"1", "", 0, 0, true},
		},
	}
	tried := 0
	for _, e := range llmExamples(t) {
		steps, ok := want[e.section]
		if !ok {
			continue
		}
		tried++
		synctest.Test(t, func(t *testing.T) {
			s, err := server.New(t.Context(), programtest.Parsed(t, e.rules), slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close(t.Context())
			for i, step := range steps {
				on := &stream{service: s, route: e.route, headers: map[string]string{"x-api-key": "k"}, metadata: map[string]map[string]string{"llm": {}}}
				on.metadata["llm"]["estimate"] = step.estimate
				answer := on.call(t, false)
				if denied := answer.GetOverallCode() == rls.RateLimitResponse_OVER_LIMIT; denied != step.denied {
					t.Errorf("%s, request %d: denied is %v, want %v", e.section, i+1, denied, step.denied)
				}
				if got := on.left(t); got != step.before {
					t.Errorf("%s, before request %d: got %d left, want %d", e.section, i+1, got, step.before)
				}
				on.metadata["llm"]["total_tokens"] = step.used
				on.call(t, true)
				if got := on.left(t); got != step.after {
					t.Errorf("%s, after request %d: got %d left, want %d", e.section, i+1, got, step.after)
				}
			}
		})
	}
	if tried != len(want) {
		t.Errorf("ways on the page: got %d, want %d", tried, len(want))
	}
}
