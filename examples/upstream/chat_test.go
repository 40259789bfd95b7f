package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// ask sends a request to the upstream and returns the answer, which the caller
// closes.
func ask(t *testing.T, url, body string, header map[string]string) *http.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

func start(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(handler())
	t.Cleanup(server.Close)
	return server.URL
}

func TestAnswers(t *testing.T) {
	const (
		plain  = `{"model":"m","messages":[]}`
		stream = `{"model":"m","stream":true,"stream_options":{"include_usage":true}}`
	)
	for name, test := range map[string]struct {
		body    string
		header  map[string]string
		status  int
		want    string // part of the answer
		without string // no part of it; "" = not looked for
	}{
		"json": {
			body: plain, header: map[string]string{"x-prompt-tokens": "12", "x-completion-tokens": "88", "x-cached-tokens": "4"}, status: 200,
			want: `"usage":{"prompt_tokens":12,"completion_tokens":88,"total_tokens":100,"prompt_tokens_details":{"cached_tokens":4}}`,
		},
		"bounded by max_tokens":       {body: `{"max_tokens":5}`, status: 200, want: `"completion_tokens":5,"total_tokens":15`},
		"text for a number":           {body: plain, header: map[string]string{"x-total-tokens": `"many"`}, status: 200, want: `"total_tokens":"many"`},
		"no usage":                    {body: plain, header: map[string]string{"x-total-tokens": "none"}, status: 200, want: "choices", without: "usage"},
		"stream":                      {body: stream, status: 200, want: "\"total_tokens\":30,\"prompt_tokens_details\":{\"cached_tokens\":0}}}\n\ndata: [DONE]\n\n"},
		"stream, usage not asked for": {body: `{"stream":true}`, status: 200, want: "data: [DONE]\n\n", without: "usage"},
		"stream, usage in each event": {body: `{"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}`, status: 200, want: `"total_tokens":11,`},
		"error":                       {body: plain, header: map[string]string{"x-status": "503"}, status: 503, want: `"error"`},
		"compressed":                  {body: stream, header: map[string]string{"accept-encoding": "gzip"}, status: 200, want: "\x1f\x8b"},
		"not a question":              {body: `[]`, status: 400, want: "the body is not a question"},
		"max_tokens out of range":     {body: `{"max_tokens":0}`, status: 400, want: "must be 1 to 1000000"},
		"not JSON for the sum":        {body: plain, header: map[string]string{"x-total-tokens": "many"}, status: 400, want: "must be JSON or none"},
		"not a number":                {body: plain, header: map[string]string{"x-prompt-tokens": "-1"}, status: 400, want: "must be a whole number"},
		"not an error":                {body: plain, header: map[string]string{"x-status": "200"}, status: 400, want: "must be 400 to 599"},
	} {
		t.Run(name, func(t *testing.T) {
			response := ask(t, start(t)+"/v1/chat/completions", test.body, test.header)
			defer func() { _ = response.Body.Close() }()
			body, err := io.ReadAll(response.Body)
			if err != nil {
				t.Fatal(err)
			}
			if response.StatusCode != test.status || !strings.Contains(string(body), test.want) {
				t.Errorf("got %d with\n%s\nwant %d with %s", response.StatusCode, body, test.status, test.want)
			}
			if test.without != "" && strings.Contains(string(body), test.without) {
				t.Errorf("got\n%s\nwant nothing with %s", body, test.without)
			}
		})
	}
}

// A stream that is held has sent half of its events, and sends the rest when it is
// released.
func TestHold(t *testing.T) {
	url := start(t)
	response := ask(t, url+"/v1/chat/completions", `{"stream":true}`, map[string]string{"x-hold": "here"})
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewScanner(response.Body)
	for range 2 * 11 { // each event is a line and an empty one; 20 with text, stop, and [DONE]
		if !lines.Scan() {
			t.Fatalf("before the release: %v", lines.Err())
		}
	}
	if err := ask(t, url+"/release/here", "", nil).Body.Close(); err != nil {
		t.Fatal(err)
	}
	rest := 0
	for lines.Scan() {
		rest++
	}
	if rest != 2*11 || lines.Err() != nil {
		t.Errorf("after the release: got %d lines and %v, want 22 and no error", rest, lines.Err())
	}
	if err := ask(t, url+"/release/here", "", nil).Body.Close(); err != nil {
		t.Error(err)
	}
}

func TestAbort(t *testing.T) {
	for _, body := range []string{`{}`, `{"stream":true}`} {
		response := ask(t, start(t)+"/v1/chat/completions", body, map[string]string{"x-abort": "yes"})
		got, err := io.ReadAll(response.Body)
		if err == nil || len(got) == 0 {
			t.Errorf("%s: got %q and %v, want the beginning of an answer and an error", body, got, err)
		}
		_ = response.Body.Close()
	}
}

func TestEcho(t *testing.T) {
	response := ask(t, start(t)+"/hello?a=b", "", map[string]string{"x-user": "me"})
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(body); !strings.HasPrefix(got, "POST /hello?a=b\n") || !strings.Contains(got, "X-User: me\r\n") {
		t.Errorf("got %q, want the method, the path and the headers", got)
	}
}
