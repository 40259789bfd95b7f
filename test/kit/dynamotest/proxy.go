package dynamotest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/ratelimit/ratelimit/test/kit/clocktest"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// Proxy stands before a DynamoDB and spoils calls by a plan. It takes every fault of
// dynamofake; Call.Input is the request's body.
type Proxy struct {
	URL string // of the endpoint

	backend string
	client  *http.Client

	mu     sync.Mutex
	idle   *sync.Cond // of mu: active is 0
	active int        // requests in flight
	plan   dynamofake.Plan
	calls  map[string]int
	faults map[dynamofake.Kind]int
	errors []error
}

// NewProxy starts a proxy before an endpoint. It is stopped when the test ends, when
// every request that it holds was applied: release the gates before. A failure of
// its own fails the test.
func NewProxy(tb testing.TB, endpoint string, plan dynamofake.Plan) *Proxy {
	tb.Helper()
	p := &Proxy{
		backend: endpoint, plan: plan, calls: map[string]int{}, faults: map[dynamofake.Kind]int{},
		client: &http.Client{Transport: &http.Transport{MaxIdleConns: 256, MaxIdleConnsPerHost: 256}},
	}
	p.idle = sync.NewCond(&p.mu)
	server := httptest.NewServer(p)
	p.URL = server.URL
	tb.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		p.Settle()
		p.client.CloseIdleConnections()
		if err := errors.Join(p.errors...); err != nil {
			tb.Errorf("the proxy before DynamoDB failed: %v", err)
		}
	})
	return p
}

// SetPlan sets the plan of faults for the calls from now on; nil = no faults.
func (p *Proxy) SetPlan(plan dynamofake.Plan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan = plan
}

// Faults returns how many faults of each kind were injected.
func (p *Proxy) Faults() map[dynamofake.Kind]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.faults)
}

// Require fails the test unless each of the kinds was injected at least once.
func (p *Proxy) Require(tb testing.TB, kinds ...dynamofake.Kind) {
	tb.Helper()
	faults := p.Faults()
	for _, k := range kinds {
		if faults[k] == 0 {
			tb.Errorf("the fault %q was never injected; injected: %v", k, faults)
		}
	}
}

// Settle waits until no request is in flight: those whose callers have gone are
// applied, save those that wait for a gate.
func (p *Proxy) Settle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.active > 0 {
		p.idle.Wait()
	}
}

// enter adds n to the requests in flight.
func (p *Proxy) enter(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active += n
	if p.active == 0 {
		p.idle.Broadcast()
	}
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.enter(1)
	defer p.enter(-1)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the caller has gone before it had asked
	}
	op := operation(r.Header)
	f := p.arrive(op, body)
	if err := f.Before(op); err != nil {
		p.failed(sendError(w, err))
		return
	}
	ctx := context.WithoutCancel(r.Context()) // a request is applied whether or not its caller still waits
	left := func() { p.abandoned(ctx, r.Header, body) }
	if f.Kind == dynamofake.HoldRequest && !f.Gate.Wait(r.Context(), left) {
		return
	}
	re, err := p.apply(ctx, f, op, r.Header, body)
	if err != nil {
		p.failed(errors.Join(err, reset(w)))
		return
	}
	if f.Kind == dynamofake.Duplicate {
		f.Gate.Later(left)
	}
	if f.Kind == dynamofake.HoldReply && !f.Gate.Wait(r.Context(), nil) || f.Latency > 0 && !clocktest.Pause(r.Context(), f.Latency) {
		return // the reply has no reader
	}
	if f.Kind == dynamofake.LoseReply {
		p.failed(reset(w))
		return
	}
	if f.Kind == dynamofake.AppliedError {
		p.failed(sendError(w, &types.InternalServerError{}))
		return
	}
	p.failed(re.send(w))
}

// arrive counts a call and asks the plan.
func (p *Proxy) arrive(op string, body []byte) dynamofake.Fault {
	var named struct {
		TableName string `json:"TableName"`
	}
	if err := json.Unmarshal(body, &named); err != nil {
		p.failed(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls[op]++
	if p.plan == nil {
		return dynamofake.Fault{}
	}
	f := p.plan(dynamofake.Call{Op: op, Table: named.TableName, N: p.calls[op], Input: body})
	if f.Kind == dynamofake.Partial && !divisible(op, body) {
		f.Kind = dynamofake.None
	}
	if f.Kind != dynamofake.None {
		p.faults[f.Kind]++
	}
	return f
}

// failed keeps a failure of the proxy for the end of the test. A caller that went
// away is none.
func (p *Proxy) failed(err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	if network, ok := errors.AsType[*net.OpError](err); ok && network.Op == "write" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.errors = append(p.errors, err)
}

// abandoned applies a request without a caller.
func (p *Proxy) abandoned(ctx context.Context, h http.Header, body []byte) {
	_, err := p.forward(ctx, h, body)
	p.failed(err)
}

// reply is the reply of DynamoDB.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// send passes a reply on.
func (re reply) send(w http.ResponseWriter) error {
	for name, values := range re.header {
		if name != "Content-Length" {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(re.status)
	_, err := w.Write(re.body)
	return err
}

// forward passes a request on.
func (p *Proxy) forward(ctx context.Context, h http.Header, body []byte) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.backend, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	request.Header = h.Clone()
	response, err := p.client.Do(request) // #nosec G704 -- to the endpoint of the test
	if err != nil {
		return reply{}, err
	}
	re := reply{status: response.StatusCode, header: response.Header}
	re.body, err = io.ReadAll(response.Body)
	return re, errors.Join(err, response.Body.Close())
}

// apply passes a request on, or half of a batch.
func (p *Proxy) apply(ctx context.Context, f dynamofake.Fault, op string, h http.Header, body []byte) (reply, error) {
	if f.Kind != dynamofake.Partial {
		return p.forward(ctx, h, body)
	}
	half, rest, err := halve(op, body)
	if err != nil {
		return reply{}, err
	}
	re, err := p.forward(ctx, h, half)
	if err != nil || re.status != http.StatusOK {
		return re, err
	}
	re.body, err = withUnprocessed(op, re.body, rest)
	re.header.Del("X-Amz-Crc32")
	return re, err
}

// sendError answers with an error as DynamoDB does.
func sendError(w http.ResponseWriter, err error) error {
	e, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		return errors.Join(fmt.Errorf("no error of DynamoDB: %w", err), reset(w))
	}
	status := http.StatusBadRequest
	if e.ErrorFault() == smithy.FaultServer {
		status = http.StatusInternalServerError
	}
	content := map[string]any{"__type": "com.amazonaws.dynamodb.v20120810#" + e.ErrorCode(), "message": e.ErrorMessage()}
	if cancelled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		content["CancellationReasons"] = cancelled.CancellationReasons
	}
	body, err := json.Marshal(content)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.Header().Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10))
	w.WriteHeader(status)
	_, err = w.Write(body)
	return err
}

// reset breaks the connection of a caller, which gets no reply.
func reset(w http.ResponseWriter) error {
	connection, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return err
	}
	tcp, ok := connection.(*net.TCPConn)
	if !ok {
		return fmt.Errorf("a connection of type %T", connection)
	}
	return errors.Join(tcp.SetLinger(0), tcp.Close())
}
