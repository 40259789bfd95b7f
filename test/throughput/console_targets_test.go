//go:build bench && !race && linux

package throughput_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	rlsv3common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/ratelimit/ratelimit/test/kit/benchtable"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

// fleetConfig is that of a replica: the address of the store, and the hash of the token.
const fleetConfig = `
log: {format: json}
store: {type: valkey, valkey: {addresses: [%q], create: true}}
server: {admin: {address: "127.0.0.1:0", tokens: {ada: {role: administer, hash: %q}}}}
limits:
  system: {rpm: 600/min, tpm: 100_000/min}
  entities:
    "team/*": {limits: {_default_: {rpm: 6_000/min}}}
domains:
- domain: bench
  rules:
  - {name: requests, match: {api_key: "*"}, entity: "key/{api_key}", resource: api, consume: {rpm: hits}}
  - {name: tokens, match: {api_key: "*", model: "*"}, entity: "key/{api_key}", resource: "{model}", consume: {tpm: 400}}
  - {name: team, match: {team: "*"}, entity: "team/{team}", resource: api, consume: {rpm: hits}}
  - {name: models, match: {model: "*"}, entity: "model/{model}", resource: api, limits: {rpm: 1_000_000/min}, consume: {rpm: hits}}
`

const (
	replicas    = 3
	entities    = 100_000
	decisions   = 20_000 // a second, of all replicas
	descriptors = 4      // of a call: so many decisions
	fleetRound  = 10 * time.Second
	viewers     = 3 // consoles, one for each replica

	answerTarget = 200 * time.Millisecond // of 95 % of the answers of a console
)

// TestBenchTargetsOfConsole measures a fleet with and without people who look at its console, in alternating
// rounds. The processor time of a decision stands for the throughput: it is not disturbed by the clients, which
// share the machine.
func TestBenchTargetsOfConsole(t *testing.T) {
	const mostCost = 1.03
	f := startFleet(t)
	f.fill(t)
	f.round(t, nil)
	var cost, rate [5]float64
	var answers answers
	for i := range cost {
		var without, with, otherRate float64
		if i%2 == 0 {
			without, otherRate = f.round(t, nil)
			with, rate[i] = f.round(t, &answers)
		} else {
			with, rate[i] = f.round(t, &answers)
			without, otherRate = f.round(t, nil)
		}
		t.Logf("round %d: %.1f µs of processor a decision with consoles at %.0f/s, %.1f µs without at %.0f/s", i, with*1e6, rate[i], without*1e6, otherRate)
		cost[i] = with / without
	}
	var table benchtable.Table
	all := answers.sorted("")
	p95 := all[len(all)*95/100]
	table.Add(benchtable.Row{
		Name:     fmt.Sprintf("console, p95 of %d answers", len(all)),
		Measured: fmt.Sprintf("%.1f ms, slowest %.0f ms (%d entities, %d replicas, %.0f decisions/s)", p95.Seconds()*1e3, all[len(all)-1].Seconds()*1e3, entities, replicas, benchtable.Median(rate[:])),
		Target:   fmt.Sprintf("below %d ms", answerTarget.Milliseconds()),
		OK:       p95 < answerTarget,
	})
	table.Add(benchtable.Row{
		Name:     fmt.Sprintf("%d consoles, processor time of the replicas", viewers),
		Measured: fmt.Sprintf("%.3f× that without", benchtable.Median(cost[:])),
		Target:   fmt.Sprintf("below %.2f×", mostCost),
		OK:       benchtable.Median(cost[:]) < mostCost,
	})
	if err := table.Write(os.Stdout); err != nil {
		t.Fatal(err)
	}
	for _, path := range answers.paths() {
		took := answers.sorted(path)
		t.Logf("%-32s %5d answers, median %7.1f ms, p95 %7.1f ms", path, len(took), took[len(took)/2].Seconds()*1e3, took[len(took)*95/100].Seconds()*1e3)
	}
	if table.Failed() {
		t.Error("a target was missed")
	}
}

// testFleet are replicas on one store, with their clients.
type testFleet struct {
	services []*service
	clients  []rlsv3.RateLimitServiceClient
	token    string
}

func startFleet(t *testing.T) *testFleet {
	t.Helper()
	program := build(t, "cmd/ratelimit")
	out, err := exec.CommandContext(t.Context(), program, "token").Output()
	words := strings.Fields(string(out)) // token, its text, hash, its text
	if err != nil || len(words) < 4 {
		t.Fatalf("a token: %v\n%s", err, out)
	}
	f := &testFleet{token: words[1]}
	store := valkeytest.Start(t)
	for range replicas {
		s := startService(t, program, fmt.Sprintf(fleetConfig, store.Address, words[3]))
		conn, err := grpc.NewClient(s.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		f.services, f.clients = append(f.services, s), append(f.clients, rlsv3.NewRateLimitServiceClient(conn))
	}
	return f
}

// fill stores the entities, each below a team.
func (f *testFleet) fill(t *testing.T) {
	t.Helper()
	const writers = 32
	var next atomic.Int64
	var work sync.WaitGroup
	for range writers {
		work.Go(func() {
			for i := next.Add(1) - 1; i < entities && !t.Failed(); i = next.Add(1) - 1 {
				f.ask(t.Context(), t, int(i)%replicas, http.MethodPut, "/v1/namespaces/default/entities/"+url.PathEscape(key(int(i))), map[string]any{})
			}
		})
	}
	work.Wait()
}

func key(i int) string { return "key/k-" + strconv.Itoa(i) }

// ask makes a request to the administration of a replica, and returns how long it took: 0 where the context
// is done soon, and before the answer.
func (f *testFleet) ask(ctx context.Context, t *testing.T, replica int, method, path string, body any) time.Duration {
	t.Helper()
	var in io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			t.Error(err)
		}
		in = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://"+f.services[replica].admin+path, in)
	if err != nil {
		t.Error(err)
		return 0
	}
	r.Header.Set("Authorization", "Bearer "+f.token)
	r.Header.Set("Content-Type", "application/json")
	began := time.Now()
	answer, err := http.DefaultClient.Do(r)
	var text []byte
	if err == nil {
		text, err = io.ReadAll(answer.Body)
		_ = answer.Body.Close()
	}
	switch took := time.Since(began); {
	case ctx.Err() != nil && took < answerTarget:
		return 0
	case ctx.Err() != nil: // at least so long
		return took
	}
	if err != nil {
		t.Error(err)
		return 0
	}
	if answer.StatusCode >= http.StatusBadRequest {
		t.Errorf("%s %s: %s: %.300s", method, path, answer.Status, text)
	}
	return time.Since(began)
}

// round has the clients ask for decisions, and people look at the consoles unless seen is nil. It returns the
// processor time of the replicas for a decision, in seconds, and the decisions a second.
func (f *testFleet) round(t *testing.T, seen *answers) (cost, rate float64) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), fleetRound)
	defer stop()
	before, began := f.processor(t), time.Now()
	var work sync.WaitGroup
	var decided atomic.Int64
	for c := range callers {
		work.Go(func() { f.call(ctx, t, c, &decided) })
	}
	if seen != nil {
		for v := range viewers {
			work.Go(func() { f.view(ctx, t, v, seen) })
		}
	}
	work.Wait()
	n := float64(decided.Load())
	return (f.processor(t) - before) / n, n / time.Since(began).Seconds()
}

// call makes the calls of one client, at its part of the rate.
func (f *testFleet) call(ctx context.Context, t *testing.T, c int, decided *atomic.Int64) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, uint64(c)))
	popular := rand.NewZipf(r, 2, 1, entities-1)
	const every = time.Second * callers * descriptors / decisions
	for next := time.Now().Add(time.Duration(r.Int64N(int64(every)))); ; next = next.Add(every) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(next)):
		}
		i := popular.Uint64()
		name, model := fmt.Sprintf("k-%d", i), fmt.Sprintf("m-%d", i%7)
		entry := func(key, value string) *rlsv3common.RateLimitDescriptor_Entry {
			return &rlsv3common.RateLimitDescriptor_Entry{Key: key, Value: value}
		}
		of := func(entries ...*rlsv3common.RateLimitDescriptor_Entry) *rlsv3common.RateLimitDescriptor {
			return &rlsv3common.RateLimitDescriptor{Entries: entries}
		}
		_, err := f.clients[c%replicas].ShouldRateLimit(ctx, &rlsv3.RateLimitRequest{Domain: "bench", Descriptors: []*rlsv3common.RateLimitDescriptor{
			of(entry("api_key", name)), of(entry("api_key", name), entry("model", model)), of(entry("team", fmt.Sprint("t-", i%1000))), of(entry("model", model)),
		}})
		switch {
		case ctx.Err() != nil, status.Code(err) == codes.DeadlineExceeded: // the round is over
			return
		case err != nil:
			t.Error(err)
			return
		}
		decided.Add(descriptors)
	}
}

// processor returns the processor time of the replicas so far, in seconds.
func (f *testFleet) processor(t *testing.T) (sum float64) {
	t.Helper()
	const ticks = 100 // a second: USER_HZ, proc(5)
	for _, s := range f.services {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.pid))
		if err != nil {
			t.Fatal(err)
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		for _, field := range fields[11:13] { // utime and stime
			n, err := strconv.ParseFloat(field, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += n / ticks
		}
	}
	return sum
}

// answers are how long the answers of a console took, by path.
type answers struct {
	mu   sync.Mutex
	took map[string][]time.Duration
}

func (a *answers) add(path string, took time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.took == nil {
		a.took = map[string][]time.Duration{}
	}
	a.took[path] = append(a.took[path], took)
}

// sorted returns the times of a path, "" for all.
func (a *answers) sorted(path string) (all []time.Duration) {
	for of, took := range a.took {
		if path == "" || of == path {
			all = append(all, took...)
		}
	}
	slices.Sort(all)
	return all
}

func (a *answers) paths() (all []string) {
	for path := range a.took {
		all = append(all, path)
	}
	slices.Sort(all)
	return all
}

// page is a page of the console: what it asks for when it is opened, and what it asks for again while it is open.
type page struct {
	opened   []question
	repeated map[time.Duration][]question
}

// question is a request of a page; %s in its path is the id of an entity.
type question struct {
	path string
	body any // nil = a GET
}

const ns = "/v1/namespaces/default/"

// pages are those of the console, in the order in which a person looks at them.
func pages() []page {
	entity := "entity=%s&"
	return []page{
		{ // Now
			opened: []question{{path: "/v1/status"}, {path: "/v1/namespaces?size=100"}},
			repeated: map[time.Duration][]question{
				2 * time.Second: {{path: "/v1/fleet"}, {path: "/v1/top?by=denied&size=10&fleet=true&namespace=default"}},
				5 * time.Second: {{path: ns + "audit?size=20"}},
			},
		},
		{opened: []question{{path: ns + "search?size=100&text=k-777"}, {path: ns + "entities?size=100"}, {path: ns + "disabled?size=100"}}},
		{ // an entity
			opened: []question{
				{path: ns + "entities/%s/family"},
				{path: ns + "limits?size=100&" + entity},
				{path: ns + "limits/effective?" + entity},
				{path: ns + "audit?size=8&" + entity},
				{path: ns + "usage?window=hour&size=1000&budgets=true&" + entity},
			},
			repeated: map[time.Duration][]question{
				1500 * time.Millisecond: {{path: ns + "buckets?size=100&" + entity}},
				2 * time.Second:         {{path: "/v1/top?by=denied&size=20&fleet=true&namespace=default&" + entity}},
			},
		},
		{opened: []question{{path: ns + "limits?size=100"}, {path: ns + "limits/file?size=100"}, {path: ns + "search?size=5&text=k-9"}}},
		{opened: []question{{path: ns + "audit?size=100"}, {path: ns + "audit?size=100&action=entity.put"}}},
		{opened: []question{{path: "/v1/explain", body: map[string]any{"domain": "bench", "entries": []any{map[string]any{"key": "api_key", "value": "k-1"}}, "hits": 1}}}},
	}
}

// view is a person who looks at one page after the other.
func (f *testFleet) view(ctx context.Context, t *testing.T, replica int, seen *answers) {
	t.Helper()
	all := pages()
	for i := replica; ctx.Err() == nil; i++ {
		f.look(ctx, t, replica, &all[i%len(all)], key(i*replica), seen)
	}
}

// look looks at one page for some seconds.
func (f *testFleet) look(ctx context.Context, t *testing.T, replica int, p *page, entity string, seen *answers) {
	t.Helper()
	ctx, stop := context.WithTimeout(ctx, 4*time.Second)
	defer stop()
	ask := func(ctx context.Context, all []question) {
		for _, q := range all {
			method := http.MethodGet
			if q.body != nil {
				method = http.MethodPost
			}
			took := f.ask(ctx, t, replica, method, strings.ReplaceAll(q.path, "%s", url.QueryEscape(entity)), q.body)
			if of, _, _ := strings.Cut(q.path, "?"); took > 0 {
				seen.add(of, took)
			}
		}
	}
	ask(ctx, p.opened)
	var open sync.WaitGroup
	for every, all := range p.repeated {
		open.Go(func() {
			for ctx.Err() == nil {
				ask(ctx, all)
				select {
				case <-ctx.Done():
				case <-time.After(every):
				}
			}
		})
	}
	open.Wait()
	<-ctx.Done()
}
