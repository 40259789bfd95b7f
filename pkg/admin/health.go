package admin

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// Health is the state of the service at /readyz. The zero value is not ready. It is safe for
// concurrent use.
type Health struct {
	// Store returns the state of the store. Set it before the first request. nil, or a nil state =
	// the answer has none.
	Store func() *StoreState

	mu      sync.Mutex
	state   State
	refused [origins]refusal
	trouble string
	empty   bool
}

// Origin is where a part of the configuration comes from.
type Origin int

// The origins.
const (
	FromFiles Origin = iota
	FromControlPlane
	origins // their number
)

// refusal says why the newest part of the configuration is not in force; the zero value says that it is.
type refusal struct {
	reason string
	at     time.Time
}

// State is the body of /readyz.
type State struct {
	Ready  bool        `json:"ready"`
	Reason string      `json:"reason,omitempty"` // why it is not ready
	Config ConfigState `json:"config"`
	Store  *StoreState `json:"store,omitempty"`
}

// StoreState says whether a store outside this process is available, and which policy decides while
// it is not.
type StoreState struct {
	Type   string    `json:"type"`
	State  string    `json:"state"`          // available, recovering, throttled, unavailable
	Since  time.Time `json:"since,omitzero"` // absent = since the start
	Policy string    `json:"policy"`         // decision.on_unavailable
	// RulesWithAnother is the number of rules with another policy.
	RulesWithAnother int `json:"rules_with_another,omitempty"`
	// Cause is the error of a call of an outage, for administrators alone.
	Cause string `json:"-"`
}

// ConfigState is the configuration in force.
type ConfigState struct {
	Files    []string  `json:"files,omitempty"`
	Hash     string    `json:"hash,omitempty"`
	LoadedAt time.Time `json:"loaded_at,omitzero"`

	// Error is the reason why the newest files are not in force, or else the newest rules of the
	// control plane. The configuration above stays in force.
	Error   string    `json:"error,omitempty"`
	ErrorAt time.Time `json:"error_at,omitzero"`
	ErrorOf Origin    `json:"-"` // whose newest part is not in force
}

// SetReady makes the service ready for traffic.
func (h *Health) SetReady() { h.set(true, "") }

// SetNotReady makes the service not ready for traffic, with a reason.
func (h *Health) SetNotReady(reason string) { h.set(false, reason) }

// SetTrouble makes the service not ready while there is a reason, even after SetReady; "" = there
// is none.
func (h *Health) SetTrouble(reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.trouble = reason
}

// SetEmpty makes /healthcheck fail, and nothing else, while no domain is in force.
func (h *Health) SetEmpty(empty bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.empty = empty
}

func (h *Health) isEmpty() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.empty
}

func (h *Health) set(ready bool, reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.state.Ready, h.state.Reason = ready, reason
}

// Loaded sets the configuration in force, with the time of its load. Its newest part is of an origin:
// that of the other one may still be refused.
func (h *Health) Loaded(newest Origin, files []string, hash string, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refused[newest] = refusal{}
	h.state.Config = ConfigState{Files: files, Hash: hash, LoadedAt: at}
}

// LoadFailed notes that the newest part of an origin cannot be used. Any client may read the reason, so it
// must not quote the files, which can have secrets.
func (h *Health) LoadFailed(of Origin, reason string, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refused[of] = refusal{reason, at}
}

// State returns the present state of the service.
func (h *Health) State() State {
	h.mu.Lock()
	state := h.state
	for of, r := range h.refused {
		if state.Config.Error == "" {
			state.Config.Error, state.Config.ErrorAt, state.Config.ErrorOf = r.reason, r.at, Origin(of)
		}
	}
	if state.Ready && h.trouble != "" {
		state.Ready, state.Reason = false, h.trouble
	}
	h.mu.Unlock()
	if h.Store != nil {
		state.Store = h.Store()
	}
	return state
}

// ServeHTTP answers /readyz: 200 when ready, 503 when not. After a failed reload the service stays
// ready, with the configuration before. It also stays ready while the store is unavailable: all
// replicas share the store, and a policy decides.
func (h *Health) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	state, code := h.State(), http.StatusOK
	if !state.Ready {
		code = http.StatusServiceUnavailable
	}
	writeJSON(w, code, state)
}

// check answers /healthcheck, as envoyproxy/ratelimit does.
func (h *Health) check(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if !h.State().Ready || h.isEmpty() {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	_, _ = w.Write([]byte("OK")) // an error says that the client has gone
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(v) // an error says that the client has gone
}
