package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ratelimit/ratelimit/internal/dynamotest"
	"github.com/ratelimit/ratelimit/pkg/admin"
)

// policies has a rule for each policy, and one that charges after the fact.
const policies = `
store: {type: dynamodb, dynamodb: {table: %s, endpoint: %q, create_table: true}}
decision: {timeout: 2s}
server: {http: {charges: true}}
limits: {system: {rpm: 100000/hour, tpm: {rate: 720/day, burst: 100000}}}
domains:
- domain: shop
  rules:
  - {match: {user: "*"}, entity: "user/{user}", resource: api, lease: none, consume: {rpm: 1}}
  - {match: {deny: "*"}, entity: "user/{deny}", resource: api, lease: none, on_unavailable: deny, consume: {rpm: 1}}
  - {match: {local: "*"}, entity: "user/{local}", resource: api, lease: none, on_unavailable: local, consume: {rpm: 1}}
  - {match: {used: "*"}, entity: "user/{used}", resource: llm, consume: {tpm: hits}, overdraw: true}
`

// middlebox stands before DynamoDB and passes calls on, or answers in its place.
type middlebox struct {
	*httptest.Server

	answer atomic.Pointer[http.HandlerFunc] // nil = DynamoDB's
	asked  atomic.Int64                     // calls that it answered
}

func newMiddlebox(t *testing.T, endpoint string) *middlebox {
	t.Helper()
	target, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	m, next := new(middlebox), httputil.NewSingleHostReverseProxy(target)
	next.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) } // a caller left
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answer := m.answer.Load(); answer != nil {
			m.asked.Add(1)
			_, _ = io.Copy(io.Discard, r.Body) // the caller may have left
			(*answer)(w, r)
			return
		}
		next.ServeHTTP(w, r)
	}))
	t.Cleanup(m.Close)
	return m
}

// says answers with a status, a type of content and a body.
func says(status int, content, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", content)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // the caller may have left
	}
}

// awsSays answers as DynamoDB does.
func awsSays(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Amzn-Requestid", "OF-A-TEST")
		says(status, "application/x-amz-json-1.0", body)(w, r)
	}
}

func awsRefuses(code string) http.HandlerFunc {
	return awsSays(http.StatusBadRequest, `{"__type":"com.amazonaws.dynamodb.v20120810#`+code+`","message":"of a test"}`)
}

func hangsUp(w http.ResponseWriter, _ *http.Request) {
	if connection, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = connection.Close() // the fault is what the test is about
	}
}

// hit makes a call of one descriptor.
func (r *running) hit(t *testing.T, key string, hits int) (int, *rlsAnswer) {
	t.Helper()
	body := fmt.Sprintf(`{"domain":"shop","descriptors":[{"entries":[{"key":%q,"value":"ada"}],"hitsAddend":"%d"}]}`, key, hits)
	resp, err := http.Post("http://"+r.http+"/json", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	a := new(rlsAnswer)
	if err := json.NewDecoder(resp.Body).Decode(a); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, a
}

// storeState returns what /readyz says of the store.
func (r *running) storeState(t *testing.T) admin.StoreState {
	t.Helper()
	code, text := r.get(t, "/readyz")
	var s admin.State
	if err := json.Unmarshal([]byte(text), &s); err != nil || code != http.StatusOK || s.Store == nil {
		t.Fatalf("/readyz: %d %s: %v", code, text, err)
	}
	return *s.Store
}

// Whatever DynamoDB, or something before it, answers in the place of a reply: the
// policies decide, charges are kept and booked when it is over, calls are not made one
// after the other, and the log says it once.
func TestRefusals(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"expired token":          awsRefuses("ExpiredTokenException"),
		"unknown client":         awsRefuses("UnrecognizedClientException"),
		"wrong signature":        awsRefuses("InvalidSignatureException"),
		"no token":               awsRefuses("MissingAuthenticationToken"),
		"key of KMS":             awsRefuses("KMSAccessDeniedException"),
		"inaccessible key":       awsRefuses("InaccessibleEncryptionCredentialsException"),
		"size of a collection":   awsRefuses("ItemCollectionSizeLimitExceededException"),
		"unknown code":           awsRefuses("SomethingNewException"),
		"no table":               awsRefuses("ResourceNotFoundException"),
		"throttle":               awsRefuses("ProvisionedThroughputExceededException"),
		"too many requests":      awsRefuses("RequestLimitExceeded"),
		"limit":                  awsRefuses("LimitExceededException"),
		"forbidden by a proxy":   says(http.StatusForbidden, "text/html", "<html>no</html>"),
		"too large for a proxy":  says(http.StatusRequestEntityTooLarge, "text/html", ""),
		"a login page":           says(http.StatusOK, "text/html", "<html>log in</html>"),
		"an empty success":       says(http.StatusOK, "application/json", ""),
		"a hollow success":       says(http.StatusOK, "application/x-amz-json-1.0", "{}"),
		"a hollow reply":         awsSays(http.StatusOK, "{}"),
		"a redirect":             func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) },
		"a closed connection":    hangsUp,
		"an error of the server": awsSays(http.StatusInternalServerError, `{"__type":"InternalServerError"}`),
		"unavailable":            says(http.StatusServiceUnavailable, "text/html", "<html>later</html>"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box, table := newMiddlebox(t, dynamotest.Start(t).URL), dynamotest.TableName(t)
			r := start(t, "--config", write(t, "c.yaml", fmt.Sprintf(policies, table, box.URL)))
			r.refuse(t, box, &answer)
		})
	}
}

func (r *running) refuse(t *testing.T, box *middlebox, answer *http.HandlerFunc) {
	t.Helper()
	for _, key := range []string{"user", "deny", "local"} {
		if code, a := r.hit(t, key, 1); code != http.StatusOK || a.DynamicMetadata["degraded"] != nil {
			t.Fatalf("before: %s: %d %+v", key, code, a)
		}
	}
	r.hit(t, "used", 100)
	box.answer.Store(answer)
	charges := 1
	for range 5 {
		for key, want := range map[string]int{"user": http.StatusOK, "deny": http.StatusTooManyRequests, "local": http.StatusOK} {
			code, a := r.hit(t, key, 1)
			if policy := map[string]string{"user": "allow"}[key]; code != want || a.DynamicMetadata["degraded"] == nil || policy != "" && a.DynamicMetadata["degraded"] != policy {
				t.Errorf("%s: %d %+v, want %d by its policy", key, code, a, want)
			}
		}
		if code, a := r.hit(t, "used", 100); code != http.StatusOK {
			t.Errorf("a charge: %d %+v", code, a)
		}
		charges++
	}
	eventually(t, "the outage to be noticed", func() bool {
		r.hit(t, "user", 1)
		return r.storeState(t).State != "available"
	})
	asked := box.asked.Load()
	for range 200 {
		r.hit(t, "user", 1)
	}
	if made := box.asked.Load() - asked; made > 100 {
		t.Errorf("%d calls to DynamoDB for 200 requests in the outage, want few", made)
	}
	box.answer.Store(nil)
	r.recover(t)
	eventually(t, "what was kept to be booked", func() bool {
		_, a := r.hit(t, "used", 0)
		return len(a.Statuses) > 0 && a.DynamicMetadata["degraded"] == nil && a.Statuses[0].LimitRemaining == 100_000-charges*100
	})
	_, metrics := r.get(t, "/metrics")
	for _, want := range []string{"ratelimit_kept_bookings_lost_total 0", "ratelimit_uncertain_bookings_total 0", `ratelimit_store_state{state="available"} 1`} {
		if !strings.Contains(metrics, "\n"+want+"\n") {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	for _, line := range []string{outageBegins, outageIsOver} {
		if n := strings.Count(r.log.String(), line); n != 1 {
			t.Errorf("the log says %d times %q, want once", n, line)
		}
	}
}

// recover has callers ask until the store is available again.
func (r *running) recover(t *testing.T) {
	t.Helper()
	eventually(t, "the store to be available", func() bool {
		var callers sync.WaitGroup
		for range 8 {
			callers.Go(func() { r.hit(t, "user", 1) })
		}
		callers.Wait()
		return r.storeState(t).State == "available"
	})
}

// A permission that the role lacks is denied, whatever the policy.
func TestDeniedPermission(t *testing.T) {
	box, table := newMiddlebox(t, dynamotest.Start(t).URL), dynamotest.TableName(t)
	r := start(t, "--config", write(t, "c.yaml", fmt.Sprintf(policies, table, box.URL)))
	r.hit(t, "user", 1)
	answer := awsRefuses("AccessDeniedException")
	box.answer.Store(&answer)
	for range 20 {
		for _, key := range []string{"user", "deny", "local"} {
			if code, a := r.hit(t, key, 1); code != http.StatusTooManyRequests || a.DynamicMetadata["reason"] != "invalid" {
				t.Fatalf("%s: %d %+v", key, code, a)
			}
		}
	}
	if got := r.storeState(t); got.State != "available" {
		t.Errorf("/readyz: %+v", got)
	}
}
