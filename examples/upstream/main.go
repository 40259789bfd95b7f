// Upstream is a server to stand behind Envoy in the examples: it answers every
// request with its method, path and headers, so that one sees what arrived. To
// POST /v1/chat/completions it answers as a provider of language models does, with
// a usage that headers of the request choose; see the type chat.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "upstream:", err)
		os.Exit(1) //nolint:forbidigo // main is where the program ends
	}
}

// run serves until ctx is done.
func run(ctx context.Context, args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("upstream", flag.ContinueOnError)
	flags.SetOutput(stderr)
	address := flags.String("address", "127.0.0.1:9000", "`host:port` to listen on")
	if err := flags.Parse(args); err != nil {
		return err
	}
	server := &http.Server{Addr: *address, Handler: handler(), ReadHeaderTimeout: 5 * time.Second}
	stopped := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stopped()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// handler returns what the server answers with.
func handler() http.Handler {
	llm := newChat()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", llm.complete)
	mux.HandleFunc("POST /release/{name}", llm.release)
	mux.HandleFunc("/", echo)
	return mux
}

// echo answers with what it was asked.
func echo(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = fmt.Fprintf(w, "%s %s\n", r.Method, r.URL.RequestURI()) //nolint:gosec // the answer is plain text
	_ = r.Header.Write(w)
}
