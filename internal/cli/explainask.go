package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/ratelimit/ratelimit/internal/cli/manifest"
	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// minInterval is the least time between two answers of --watch.
const minInterval = 100 * time.Millisecond

// explainOutputs are the forms of an explanation.
func explainOutputs() []string { return []string{"table", "wide", "json"} }

// asker returns the question that the command line asks: of a running service, or of the
// configuration. The answer is an explanation of a descriptor or of a call.
func (f *explainFlags) asker(cmd *cobra.Command, args []string) (func(context.Context) (any, error), error) {
	if !slices.Contains(explainOutputs(), f.output) {
		return nil, fmt.Errorf("--output is %q; it must be table, wide or json", f.output)
	}
	if err := f.findServer(cmd.Context()); err != nil {
		return nil, err
	}
	switch {
	case f.watch && f.server == "":
		return nil, errors.New("--watch asks a running service: find it with --live, or name it with --server or --context")
	case f.interval < minInterval:
		return nil, fmt.Errorf("--interval is %v; it must be at least %v", f.interval, minInterval)
	case f.file != "" && cmd.Flags().Changed("hits"):
		return nil, errors.New("-f has the whole call: say hits_addend there, and leave out --hits")
	case f.file != "":
		return f.callAsker(cmd.InOrStdin())
	}
	q, err := question(args)
	if err != nil {
		return nil, err
	}
	if cmd.Flags().Changed("hits") {
		q.Hits = &f.hits
	}
	if f.server != "" {
		return f.descriptorAsker(q)
	}
	return func(ctx context.Context) (any, error) {
		return f.compute(ctx, func(e *admin.Explainer) (any, error) { return e.Explain(ctx, q) })
	}, nil
}

// findServer finds the service to ask, if the flags want one.
func (f *explainFlags) findServer(ctx context.Context) error {
	if f.live || f.data != "" {
		return f.find(ctx, f.data, f.File)
	}
	if f.context == "" {
		return nil
	}
	_, err := f.findNamed(false)
	return err
}

// callAsker reads a call, and returns the question about it.
func (f *explainFlags) callAsker(stdin io.Reader) (func(context.Context) (any, error), error) {
	sources, err := manifest.Read([]string{f.file}, stdin)
	if err != nil {
		return nil, err
	}
	if len(sources) != 1 {
		return nil, fmt.Errorf("%s has %d files: name one", f.file, len(sources))
	}
	text := sources[0].Data
	call, err := rls.ParseCall(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.file, err)
	}
	if f.server != "" {
		return func(ctx context.Context) (any, error) {
			x := new(admin.CallExplanation)
			return x, f.ask(ctx, text, x)
		}, nil
	}
	return func(ctx context.Context) (any, error) {
		return f.compute(ctx, func(e *admin.Explainer) (any, error) { return e.ExplainCall(ctx, call) })
	}, nil
}

// descriptorAsker returns the question about a descriptor to a running service.
func (f *explainFlags) descriptorAsker(q *admin.Question) (func(context.Context) (any, error), error) {
	for _, e := range q.Entries {
		if !utf8.ValidString(e.Key + e.Value) {
			return nil, fmt.Errorf("the entry %q is not UTF-8, which JSON cannot carry to a server; leave out --server", e.Key+"="+e.Value)
		}
	}
	body, err := json.Marshal(q)
	if err != nil {
		return nil, command.Failed(err)
	}
	return func(ctx context.Context) (any, error) {
		x := new(admin.Explanation)
		return x, f.ask(ctx, body, x)
	}, nil
}

// compute explains from the configuration, with buckets that no request has used.
func (f *explainFlags) compute(ctx context.Context, explain func(*admin.Explainer) (any, error)) (any, error) {
	cfg, err := f.Load()
	if err != nil {
		return nil, err
	}
	f.runs = f.runsHere(ctx)
	store := embedded.New(embedded.Config{})
	defer func() { _ = store.Close(ctx) }()
	l, err := limiter.New(limiter.Config{Store: store})
	if err != nil {
		return nil, command.Failed(err)
	}
	if err := l.SetStatic(ctx, cfg.Static); err != nil {
		return nil, err
	}
	inForce := &admin.InForce{Rules: cfg.Rules, UnmatchedDeny: cfg.DenyUnknown, Files: cfg.Envoyproxy.FileOptions}
	return explain(&admin.Explainer{InForce: func() *admin.InForce { return inForce }, Decider: l, Now: time.Now})
}

// runsHere reports whether a service with the file of the configuration runs on this machine.
func (f *explainFlags) runsHere(ctx context.Context) bool {
	if f.File == "" {
		return false
	}
	ctx, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	wanted, err := newFileService("", f.File)
	if err != nil {
		return false
	}
	_, err = wanted.find(ctx)
	return err == nil
}

// ask has a running service explain, and reads its answer into x.
func (f *explainFlags) ask(ctx context.Context, body []byte, x any) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	url := f.url("/v1/explain")
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("--server: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := f.do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if err := api.ReadAnswer(resp.Body, x); err != nil {
		return command.Failed(errors.Join(fmt.Errorf("%s does not answer like this service", url), err))
	}
	return nil
}

// clearScreen is how a terminal begins on an empty screen.
const clearScreen = "\x1b[H\x1b[2J"

// show writes the answer; with --watch again and again until the command is interrupted.
func (f *explainFlags) show(ctx context.Context, ask func(context.Context) (any, error), out io.Writer) error {
	between := "\n"
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) { // #nosec G115 -- a descriptor is small
		between = clearScreen
	}
	for first := true; ; first = false {
		x, err := ask(ctx)
		if err == nil && f.watch && (!first || between == clearScreen) {
			_, err = io.WriteString(out, between)
		}
		if err == nil {
			err = f.write(out, x)
		}
		if f.watch && ctx.Err() != nil { // an interrupt is how it ends
			err = nil
		}
		if err != nil || !f.watch || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(f.interval):
		case <-ctx.Done():
			return nil
		}
	}
}

// write writes an explanation in the form of output.
func (f *explainFlags) write(out io.Writer, x any) error {
	if f.output == "json" {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return command.Failed(enc.Encode(x))
	}
	p := Printer{Live: f.server != "", wide: f.output == "wide"}
	if call, ok := x.(*admin.CallExplanation); ok {
		return command.Failed(p.writeCall(out, call))
	}
	return command.Failed(p.WriteExplanation(out, x.(*admin.Explanation)))
}
