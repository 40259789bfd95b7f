package dynamotest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Recorded is a call that was made.
type Recorded struct {
	Op       string // such as "UpdateItem"
	Status   int    // 0 when there was no reply
	Error    string // code, such as "ConditionalCheckFailedException"; "" = none
	Consumed []Consumed
}

// Consumed is the capacity that a call reports for a table, if it was asked to.
type Consumed struct {
	TableName              string           `json:"TableName"`
	CapacityUnits          float64          `json:"CapacityUnits"`
	Table                  Units            `json:"Table"`
	GlobalSecondaryIndexes map[string]Units `json:"GlobalSecondaryIndexes"`
}

// Units is a part of the capacity that a call reports.
type Units struct {
	CapacityUnits float64 `json:"CapacityUnits"`
}

// Recorder is a transport that records the calls that pass it, in the order of their
// replies. It is safe for concurrent use.
type Recorder struct {
	next  http.RoundTripper
	mu    sync.Mutex
	calls []Recorded
}

// NewRecorder returns a recorder before another transport; nil = http.DefaultTransport.
func NewRecorder(next http.RoundTripper) *Recorder {
	if next == nil {
		next = http.DefaultTransport
	}
	return &Recorder{next: next}
}

// RoundTrip implements http.RoundTripper.
func (r *Recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	call := Recorded{Op: operation(request.Header)}
	response, err := r.next.RoundTrip(request)
	if err == nil {
		call.Status = response.StatusCode
		err = call.read(response)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, call)
	return response, err
}

// operation is the name of the operation that a request asks for.
func operation(h http.Header) string {
	_, op, _ := strings.Cut(h.Get("X-Amz-Target"), ".")
	return op
}

// read records fields of a reply and leaves the reply as it was.
func (c *Recorded) read(response *http.Response) error {
	body, err := io.ReadAll(response.Body)
	if closeErr := response.Body.Close(); err == nil {
		err = closeErr
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("read the reply to %s: %w", c.Op, err)
	}
	var reply struct {
		Type             string          `json:"__type"`
		ConsumedCapacity json.RawMessage `json:"ConsumedCapacity"`
	}
	if err := json.Unmarshal(body, &reply); err != nil {
		return fmt.Errorf("decode the reply to %s: %w", c.Op, err)
	}
	_, c.Error, _ = strings.Cut(reply.Type, "#")
	switch {
	case len(reply.ConsumedCapacity) == 0:
		return nil
	case reply.ConsumedCapacity[0] == '[':
		err = json.Unmarshal(reply.ConsumedCapacity, &c.Consumed)
	default:
		c.Consumed = make([]Consumed, 1)
		err = json.Unmarshal(reply.ConsumedCapacity, &c.Consumed[0])
	}
	if err != nil {
		return fmt.Errorf("decode the capacity of %s: %w", c.Op, err)
	}
	return nil
}

// Take returns the calls since the last Take, and forgets them.
func (r *Recorder) Take() []Recorded {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := r.calls
	r.calls = nil
	return calls
}

// Count returns how many calls of each operation there were since the last Take.
func (r *Recorder) Count() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := map[string]int{}
	for _, c := range r.calls {
		n[c.Op]++
	}
	return n
}

// Want fails the test unless the calls since the last Take were exactly these, in
// this order, and forgets them.
func (r *Recorder) Want(tb testing.TB, ops ...string) {
	tb.Helper()
	r.want(tb, ops, false)
}

// WantAnyOrder is [Recorder.Want] for calls that are made in parallel.
func (r *Recorder) WantAnyOrder(tb testing.TB, ops ...string) {
	tb.Helper()
	r.want(tb, ops, true)
}

func (r *Recorder) want(tb testing.TB, want []string, sorted bool) {
	tb.Helper()
	calls := r.Take()
	got := make([]string, len(calls))
	for i, c := range calls {
		got[i] = c.Op
	}
	want = append([]string{}, want...)
	if sorted {
		slices.Sort(got)
		slices.Sort(want)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		tb.Errorf("calls of DynamoDB (-want +got):\n%s", diff)
	}
}
