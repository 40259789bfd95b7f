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
	"time"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
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

// inTurn answers by one after the other.
func inTurn(answers ...http.HandlerFunc) http.HandlerFunc {
	var n atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) { answers[n.Add(1)%int64(len(answers))](w, r) }
}

// hollow answers with nothing where DynamoDB never does. It does to a read of no item, and to a put.
func hollow(w http.ResponseWriter, r *http.Request) {
	switch r.Header.Get("X-Amz-Target") {
	case "DynamoDB_20120810.GetItem", "DynamoDB_20120810.PutItem":
		awsSays(http.StatusInternalServerError, `{"__type":"InternalServerError"}`)(w, r)
	default:
		awsSays(http.StatusOK, "{}")(w, r)
	}
}

func hangsUp(w http.ResponseWriter, _ *http.Request) {
	if connection, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = connection.Close() // the broken connection is the fault under test
	}
}

// hit makes a call of one descriptor.
func (r *running) hit(t *testing.T, key string, hits int) (int, *rlsAnswer) {
	t.Helper()
	return r.call(t, fmt.Sprintf(`{"domain":"shop","descriptors":[{"entries":[{"key":%q,"value":"ada"}],"hitsAddend":"%d"}]}`, key, hits))
}

// storeState returns the state of the store by /readyz.
func (r *running) storeState(t *testing.T) admin.StoreState {
	t.Helper()
	code, text := r.get(t, "/readyz")
	var s admin.State
	if err := json.Unmarshal([]byte(text), &s); err != nil || code != http.StatusOK || s.Store == nil {
		t.Fatalf("/readyz: %d %s: %v", code, text, err)
	}
	return *s.Store
}

// DynamoDB, or a proxy before it, can give any answer in place of a reply. Then the
// policies decide, and charges wait and are booked when it is over. Calls are not made
// one after the other, and the log has one line.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"credentials": inTurn(awsRefuses("ExpiredTokenException"), awsRefuses("UnrecognizedClientException"),
			awsRefuses("InvalidSignatureException"), awsRefuses("MissingAuthenticationToken")),
		"keys": inTurn(awsRefuses("KMSAccessDeniedException"), awsRefuses("InaccessibleEncryptionCredentialsException")),
		"the table": inTurn(awsRefuses("ResourceNotFoundException"), awsRefuses("ItemCollectionSizeLimitExceededException"),
			awsRefuses("SomethingNewException")),
		"throttles": inTurn(awsRefuses("ProvisionedThroughputExceededException"), awsRefuses("RequestLimitExceeded"),
			awsRefuses("LimitExceededException")),
		"a proxy that refuses": inTurn(says(http.StatusForbidden, "text/html", "<html>no</html>"),
			says(http.StatusRequestEntityTooLarge, "text/html", "")),
		"a portal": inTurn(says(http.StatusOK, "text/html", "<html>log in</html>"), says(http.StatusOK, "application/json", ""),
			says(http.StatusOK, "application/x-amz-json-1.0", "{}"),
			func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) }),
		"hollow replies": hollow,
		"errors": inTurn(awsSays(http.StatusInternalServerError, `{"__type":"InternalServerError"}`),
			says(http.StatusServiceUnavailable, "text/html", "<html>later</html>"), hangsUp),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box, table := newMiddlebox(t, dynamotest.Start(t).URL), dynamotest.TableName(t)
			r := start(t, "--config", programtest.WriteFile(t, "c.yaml", fmt.Sprintf(policies, table, box.URL)))
			r.refuse(t, box, &answer)
		})
	}
}

func (r *running) refuse(t *testing.T, box *middlebox, answer *http.HandlerFunc) {
	t.Helper()
	for _, key := range []string{"user", "deny", "local"} {
		eventually(t, "the table to decide", func() bool {
			code, a := r.hit(t, key, 1)
			return code == http.StatusOK && a.DynamicMetadata["degraded"] == nil
		})
	}
	r.hit(t, "used", 100)
	box.answer.Store(answer)
	eventually(t, "messages from before to end", func() bool { // an answer of theirs may still decide
		_, a := r.hit(t, "user", 1)
		return a.DynamicMetadata["degraded"] != nil
	})
	charges := 1
	for range 4 {
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
	asked, began := box.asked.Load(), time.Now()
	for range 100 {
		r.hit(t, "user", 1)
	}
	// A table that is down is asked from time to time, however few requests there are.
	if made, took := box.asked.Load()-asked, time.Since(began); made > 50 && float64(made) > 10*took.Seconds() {
		t.Errorf("%d calls to DynamoDB for 100 requests in %v of the outage, want few", made, took)
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

// A call whose permission the role lacks is denied under every policy. Messages may take long: after one
// without a reply the outcome is unknown, and a policy decides.
func TestDeniedPermission(t *testing.T) {
	box, table := newMiddlebox(t, dynamotest.Start(t).URL), dynamotest.TableName(t)
	patient := strings.Replace(policies, "timeout: 2s", "timeout: 20s", 1)
	r := start(t, "--config", programtest.WriteFile(t, "c.yaml", fmt.Sprintf(patient, table, box.URL)))
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

// A table that hangs holds up no charge for long, and no call in flight. The usage
// waits, and is booked once when the table goes on.
func TestChargesWhileTheTableHangs(t *testing.T) {
	box, table := newMiddlebox(t, dynamotest.Start(t).URL), dynamotest.TableName(t)
	r := start(t, "--config", programtest.WriteFile(t, "c.yaml", fmt.Sprintf(policies, table, box.URL)))
	const charges = 300
	r.hit(t, "used", 10)
	hangs := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	box.answer.Store(&hangs)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var callers sync.WaitGroup
		for range 13 {
			callers.Go(func() {
				for range (charges - 1) / 13 {
					if code, a := r.hit(t, "used", 10); code != http.StatusOK || a.DynamicMetadata["degraded"] != "allow" {
						t.Errorf("a charge: %d %+v", code, a)
					}
				}
			})
		}
		callers.Wait()
	}()
	select {
	case <-done:
	case <-time.After(patience): // one charge alone took twice as long
		t.Fatal("charges are not answered while the table hangs")
	}
	_, metrics := r.get(t, "/metrics")
	for _, want := range []string{"ratelimit_requests_in_flight 0", fmt.Sprintf("ratelimit_kept_bookings %d", charges-1)} {
		if !strings.Contains(metrics, "\n"+want+"\n") {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	if code, _ := r.hit(t, "user", 1); code != http.StatusOK {
		t.Errorf("a call: %d", code)
	}
	box.answer.Store(nil)
	r.recover(t)
	eventually(t, "what was kept to be booked", func() bool {
		_, a := r.hit(t, "used", 0)
		return len(a.Statuses) > 0 && a.DynamicMetadata["degraded"] == nil && a.Statuses[0].LimitRemaining == 100_000-charges*10
	})
}
