package admin

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// Health is what the service says of itself at /readyz. The zero value is not
// ready. It is safe for concurrent use.
type Health struct {
	// Store returns the state of the store; it is set before the first request. nil, or a
	// nil state = there is nothing to say.
	Store func() *StoreState

	mu      sync.Mutex
	state   State
	trouble string
}

// State is the body of /readyz.
type State struct {
	Ready  bool        `json:"ready"`
	Reason string      `json:"reason,omitempty"` // why it is not ready
	Config ConfigState `json:"config"`
	Store  *StoreState `json:"store,omitempty"`
}

// StoreState says whether a store that is not in this process answers, and which policy
// decides while it does not.
type StoreState struct {
	Type   string    `json:"type"`
	State  string    `json:"state"`          // available, recovering, throttled, unavailable
	Since  time.Time `json:"since,omitzero"` // absent = since the start
	Policy string    `json:"policy"`         // decision.on_unavailable
	// RulesWithAnother is how many rules have another policy.
	RulesWithAnother int `json:"rules_with_another,omitempty"`
}

// ConfigState says which configuration is in force.
type ConfigState struct {
	Files    []string  `json:"files,omitempty"`
	Hash     string    `json:"hash,omitempty"`
	LoadedAt time.Time `json:"loaded_at,omitzero"`

	// Error says that the newest files are not in force, and where they are wrong; the
	// configuration above still is.
	Error   string    `json:"error,omitempty"`
	ErrorAt time.Time `json:"error_at,omitzero"`
}

// SetReady says that the service should get traffic.
func (h *Health) SetReady() { h.set(true, "") }

// SetNotReady says that the service should get no more traffic, and why.
func (h *Health) SetNotReady(reason string) { h.set(false, reason) }

// SetTrouble says that the service should get no traffic as long as there is a reason,
// also when it is ready else; "" = there is none.
func (h *Health) SetTrouble(reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.trouble = reason
}

func (h *Health) set(ready bool, reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.state.Ready, h.state.Reason = ready, reason
}

// Loaded says which configuration came into force, and when.
func (h *Health) Loaded(files []string, hash string, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.state.Config = ConfigState{Files: files, Hash: hash, LoadedAt: at}
}

// LoadFailed says that newer files are there which cannot be used. Any client may read the
// reason: it must not quote the files, which can have secrets.
func (h *Health) LoadFailed(reason string, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.state.Config.Error, h.state.Config.ErrorAt = reason, at
}

// State returns what the service says of itself now.
func (h *Health) State() State {
	h.mu.Lock()
	state := h.state
	if state.Ready && h.trouble != "" {
		state.Ready, state.Reason = false, h.trouble
	}
	h.mu.Unlock()
	if h.Store != nil {
		state.Store = h.Store()
	}
	return state
}

// ServeHTTP answers /readyz: 200 when ready, 503 when not. A reload that failed
// does not make the service unready: it goes on with the one before. Neither does a store
// that does not answer: all replicas share it, and a policy decides.
func (h *Health) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	state, code := h.State(), http.StatusOK
	if !state.Ready {
		code = http.StatusServiceUnavailable
	}
	writeJSON(w, code, state)
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(v) // the client went away: nobody to tell
}
