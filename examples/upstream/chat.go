package main

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// chat answers POST /v1/chat/completions as a provider of language models does,
// with JSON or, when asked to stream, with server-sent events. It makes up the
// text; headers of the request say what it pretends:
//
//	x-prompt-tokens      tokens of the question; default 10
//	x-completion-tokens  tokens of the answer; default 20, or max_tokens if that is less
//	x-cached-tokens      how many of the question's were cached; default 0
//	x-total-tokens       any JSON, put where the sum belongs; or "none": no usage at all
//	x-content-type       the answer's; default application/json, or text/event-stream; charset=utf-8
//	x-status             answer with this status, 400 to 599, and an error
//	x-hold               a name: wait in the middle of the answer for POST /release/NAME
//	x-abort              any value: break the connection in the middle of the answer
//
// Like the providers, it compresses when the request accepts gzip, and a stream has
// its usage in the last event, and only with stream_options.include_usage. With
// stream_options.continuous_usage_stats every event has the usage so far.
type chat struct {
	mu    sync.Mutex
	holds map[string]chan struct{} // closed when released
}

func newChat() *chat { return &chat{holds: make(map[string]chan struct{})} }

// question is what the body of a request must be.
type question struct {
	Model         string            `json:"model"`
	Messages      []json.RawMessage `json:"messages"`
	MaxTokens     *int              `json:"max_tokens"`
	MaxCompletion *int              `json:"max_completion_tokens"`
	Stream        bool              `json:"stream"`
	StreamOptions struct {
		IncludeUsage    bool `json:"include_usage"`
		ContinuousUsage bool `json:"continuous_usage_stats"`
	} `json:"stream_options"`
}

// usage counts tokens.
type usage struct {
	Prompt     int             `json:"prompt_tokens"`
	Completion int             `json:"completion_tokens"`
	Total      json.RawMessage `json:"total_tokens"`
	Details    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// maxBody bounds the body of a request.
const maxBody = 16 << 20

// complete answers a question.
func (c *chat) complete(w http.ResponseWriter, r *http.Request) {
	var q question
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&q); err != nil {
		fail(w, http.StatusBadRequest, "the body is not a question: "+err.Error())
		return
	}
	p, err := pretend(r.Header, &q)
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	if p.status != 0 {
		fail(w, p.status, "as x-status asked")
		return
	}
	parts, contentType := p.answer(&q), "application/json"
	if q.Stream {
		parts, contentType = p.events(&q), "text/event-stream; charset=utf-8"
	}
	if other := r.Header.Get("X-Content-Type"); other != "" {
		contentType = other
	}
	w.Header().Set("Content-Type", contentType)
	send := newSender(w, r)
	half := len(parts) / 2
	if !send.all(parts[:half]) || !c.wait(r) {
		return
	}
	if r.Header.Get("X-Abort") != "" {
		send.abort()
		return
	}
	if send.all(parts[half:]) {
		send.close()
	}
}

// wait waits where a hold is asked for, and reports whether the client is still there.
func (c *chat) wait(r *http.Request) bool {
	name := r.Header.Get("X-Hold")
	if name == "" {
		return true
	}
	select {
	case <-c.hold(name):
		return true
	case <-r.Context().Done():
		return false
	}
}

// hold returns the channel that is closed when a hold is released.
func (c *chat) hold(name string) chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holds[name] == nil {
		c.holds[name] = make(chan struct{})
	}
	return c.holds[name]
}

// release answers POST /release/NAME: those that wait go on, and nobody will wait
// for this name again.
func (c *chat) release(w http.ResponseWriter, r *http.Request) {
	released := c.hold(r.PathValue("name"))
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-released:
	default:
		close(released)
	}
	w.WriteHeader(http.StatusNoContent)
}

// pretence is what an answer pretends.
type pretence struct {
	status     int // 0: no error
	prompt     int
	completion int
	cached     int
	total      string // JSON in place of the sum; "" = the sum; none = no usage
}

// pretend reads the headers of a request.
func pretend(h http.Header, q *question) (pretence, error) {
	p := pretence{prompt: 10, completion: 20, total: h.Get("X-Total-Tokens")}
	for _, limit := range []*int{q.MaxTokens, q.MaxCompletion} {
		if limit == nil {
			continue
		}
		if *limit < 1 || *limit > 1_000_000 {
			return p, fmt.Errorf("max_tokens is %d, and must be 1 to 1000000", *limit)
		}
		p.completion = min(p.completion, *limit)
	}
	for name, number := range map[string]*int{
		"X-Status": &p.status, "X-Prompt-Tokens": &p.prompt,
		"X-Completion-Tokens": &p.completion, "X-Cached-Tokens": &p.cached,
	} {
		if h.Get(name) == "" {
			continue
		}
		n, err := strconv.Atoi(h.Get(name))
		if err != nil || n < 0 {
			return p, fmt.Errorf("%s is %q, and must be a whole number", name, h.Get(name))
		}
		*number = n
	}
	if p.status != 0 && (p.status < 400 || p.status > 599) {
		return p, fmt.Errorf("X-Status is %d, and must be 400 to 599", p.status)
	}
	if p.total != "" && p.total != "none" && !json.Valid([]byte(p.total)) {
		return p, fmt.Errorf("X-Total-Tokens is %q, and must be JSON or none", p.total)
	}
	return p, nil
}

// usage returns the usage after so many tokens of the answer.
func (p *pretence) usage(completion int) *usage {
	if p.total == "none" {
		return nil
	}
	u := &usage{Prompt: p.prompt, Completion: completion, Total: json.RawMessage(p.total)}
	if p.total == "" {
		u.Total = json.RawMessage(strconv.Itoa(p.prompt + completion))
	}
	u.Details.Cached = p.cached
	return u
}

// answer returns the two halves of an answer in one piece.
func (p *pretence) answer(q *question) []string {
	message := map[string]string{"role": "assistant", "content": strings.TrimSpace(strings.Repeat("word ", min(p.completion, maxEvents)))}
	body := object{
		"id": "chatcmpl-1", "object": "chat.completion", "model": q.Model,
		"choices": []object{{"index": 0, "message": message, "finish_reason": "stop"}},
	}
	if u := p.usage(p.completion); u != nil {
		body["usage"] = u
	}
	text := body.text() + "\n"
	return []string{text[:len(text)/2], text[len(text)/2:]}
}

// maxEvents bounds the events with text of a stream. Below it each has one token.
const maxEvents = 1000

// events returns the events of a stream.
func (p *pretence) events(q *question) []string {
	var events []string
	event := func(choices []object, u *usage) {
		body := object{"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": q.Model, "choices": choices}
		if q.StreamOptions.IncludeUsage && p.total != "none" {
			body["usage"] = u // null until it is known
		}
		events = append(events, "data: "+body.text()+"\n\n")
	}
	soFar := func(completion int) *usage {
		if !q.StreamOptions.ContinuousUsage {
			return nil
		}
		return p.usage(completion)
	}
	n := min(p.completion, maxEvents)
	for i := 1; i <= n; i++ {
		event([]object{{"index": 0, "delta": object{"content": "word "}, "finish_reason": nil}}, soFar(p.completion*i/n))
	}
	event([]object{{"index": 0, "delta": object{}, "finish_reason": "stop"}}, soFar(p.completion))
	if q.StreamOptions.IncludeUsage && p.total != "none" {
		event([]object{}, p.usage(p.completion))
	}
	return append(events, "data: [DONE]\n\n")
}

// object is a JSON object.
type object map[string]any

func (o object) text() string {
	text, err := json.Marshal(o)
	if err != nil {
		return "{}" // which is never: everything in it is text, numbers and checked JSON
	}
	return string(text)
}

// sender writes an answer, piece by piece, compressed if the client wants it.
type sender struct {
	w       http.ResponseWriter
	control *http.ResponseController
	gzip    *gzip.Writer // nil: plain
}

func newSender(w http.ResponseWriter, r *http.Request) *sender {
	s := &sender{w: w, control: http.NewResponseController(w)}
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		s.gzip = gzip.NewWriter(w)
	}
	return s
}

// all sends pieces and reports whether the client is still there.
func (s *sender) all(pieces []string) bool {
	for _, piece := range pieces {
		if s.gzip == nil {
			_, _ = io.WriteString(s.w, piece) //nolint:gosec // no browser reads it; that the client is gone shows at the flush
		} else {
			_, _ = io.WriteString(s.gzip, piece)
			_ = s.gzip.Flush()
		}
		if s.control.Flush() != nil {
			return false
		}
	}
	return true
}

// close ends the answer.
func (s *sender) close() {
	if s.gzip != nil {
		_ = s.gzip.Close() // fails only for a client that is gone
	}
}

// abort breaks the connection.
func (s *sender) abort() {
	if conn, _, err := s.control.Hijack(); err == nil {
		_ = conn.Close()
	}
}

// fail answers with an error in the form of the providers.
func fail(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, object{"error": object{"message": message, "type": "upstream"}}.text()+"\n")
}
