package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

type explainFlags struct {
	source
	connection
	hits   uint64
	output string
}

func newExplain() *cobra.Command {
	var f explainFlags
	cmd := &cobra.Command{
		Use:   "explain DOMAIN KEY=VALUE...",
		Short: "Show what a descriptor would do, and why",
		Long: `explain shows the rule that a descriptor meets, why the rules before it do not match,
the buckets it takes from, and where each number comes from. It takes nothing. Of a
descriptor that no rule matches it shows the nearest rule; of a rule in shadow mode, its
limits and whether it would deny.

Without --server it reads the configuration, and every bucket is full. With
--server it asks a running service for the balances as they are.`,
		Example: `  ratelimit explain llm-gateway api_key=k-123 model=gpt-4
  ratelimit explain --server http://127.0.0.1:8080 llm-gateway api_key=k-123 model=gpt-4`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return errors.New("explain needs a domain and at least one KEY=VALUE, such as: ratelimit explain llm-gateway api_key=k-123 model=gpt-4")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := question(args)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("hits") {
				q.Hits = &f.hits
			}
			return f.explain(cmd.Context(), q, cmd.OutOrStdout())
		},
	}
	f.source.flags(cmd)
	f.connection.flags(cmd.Flags(), "address of a running service: its HTTP side, such as http://127.0.0.1:8080, or its admin listener, unix:///PATH")
	cmd.Flags().Uint64Var(&f.hits, "hits", 1, "hits_addend of the descriptor; 0 is a look")
	cmd.Flags().StringVarP(&f.output, "output", "o", "table", "table or json")
	return cmd
}

// question reads DOMAIN KEY=VALUE...
func question(args []string) (*admin.Question, error) {
	q := &admin.Question{Domain: args[0]}
	for _, arg := range args[1:] {
		key, value, ok := strings.Cut(arg, "=")
		if !ok {
			return nil, fmt.Errorf("%q is not an entry: write KEY=VALUE, or KEY= for an empty value", arg)
		}
		q.Entries = append(q.Entries, admin.Entry{Key: key, Value: value})
	}
	return q, nil
}

func (f *explainFlags) explain(ctx context.Context, q *admin.Question, out io.Writer) error {
	if f.output != "table" && f.output != "json" {
		return fmt.Errorf("--output is %q; it must be table or json", f.output)
	}
	ask := f.ask
	switch {
	case f.server == "" && f.context == "":
		ask = f.compute
	case f.context != "":
		if _, err := f.findNamed(false); err != nil {
			return err
		}
	}
	x, err := ask(ctx, q)
	if err != nil {
		return err
	}
	if f.output == "json" {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return failed(enc.Encode(x))
	}
	return failed(writeExplanation(out, x, f.server != ""))
}

// compute explains from the configuration, with buckets that nobody has used.
func (f *explainFlags) compute(ctx context.Context, q *admin.Question) (*admin.Explanation, error) {
	cfg, err := f.load()
	if err != nil {
		return nil, err
	}
	store := embedded.New(embedded.Config{})
	defer func() { _ = store.Close(ctx) }()
	l, err := limiter.New(limiter.Config{Store: store})
	if err != nil {
		return nil, failed(err)
	}
	if err := l.SetStatic(ctx, cfg.Static); err != nil {
		return nil, err
	}
	inForce := &admin.InForce{Rules: cfg.Rules, UnmatchedDeny: cfg.DenyUnknown}
	e := &admin.Explainer{InForce: func() *admin.InForce { return inForce }, Decider: l, Now: time.Now}
	return e.Explain(ctx, q)
}

// ask explains from a running service.
func (f *explainFlags) ask(ctx context.Context, q *admin.Question) (*admin.Explanation, error) {
	for _, e := range q.Entries {
		if !utf8.ValidString(e.Key + e.Value) {
			return nil, fmt.Errorf("the entry %q is not UTF-8, which JSON cannot carry to a server; leave out --server", e.Key+"="+e.Value)
		}
	}
	body, err := json.Marshal(q)
	if err != nil {
		return nil, failed(err)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	url := f.url("/v1/explain")
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("--server: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := f.do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	x := new(admin.Explanation)
	if err := json.NewDecoder(resp.Body).Decode(x); err != nil {
		return nil, failed(errors.Join(fmt.Errorf("%s does not answer like this service", url), err))
	}
	return x, nil
}

// writeExplanation writes an explanation for people.
func writeExplanation(w io.Writer, x *admin.Explanation, live bool) error {
	var text strings.Builder
	writeAnswer(&text, x)
	writeLimits(&text, "", x.Limits, live)
	for _, s := range x.Shadows {
		writeLimits(&text, "shadow rule "+s.Rule, s.Limits, live)
	}
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	if _, err := io.WriteString(tw, text.String()); err != nil {
		return err
	}
	return tw.Flush()
}

func writeAnswer(tw *strings.Builder, x *admin.Explanation) {
	fmt.Fprintf(tw, "domain\t%s\n", x.Domain)
	rule := x.Rule
	switch {
	case rule != "":
	case x.Namespace == "":
		rule = "(none: the configuration has no such domain)"
		switch {
		case x.DidYouMean != "":
			rule += fmt.Sprintf("; did you mean %q?", x.DidYouMean)
		case strings.Contains(x.Domain, "="):
			rule += "; the domain comes first: ratelimit explain DOMAIN KEY=VALUE..."
		}
	default:
		rule = "(none matches)"
	}
	fmt.Fprintf(tw, "rule\t%s\n", rule)
	if len(x.Domains) > 0 {
		fmt.Fprintf(tw, "domains\t%s\n", strings.Join(x.Domains, ", "))
	}
	if x.Nearest != nil {
		fmt.Fprintf(tw, "nearest\t%s\n", strings.TrimPrefix(x.Nearest.Rule+": "+x.Nearest.Why, ": "))
	}
	for _, name := range x.Unlisted {
		fmt.Fprintf(tw, "resource\t%q is not in the list of resources: RESOURCE below is the one that it counts as\n", name)
	}
	if x.Lease != "" {
		fmt.Fprintf(tw, "lease\t%s\n", x.Lease)
	}
	for _, s := range x.Shadows {
		fmt.Fprintf(tw, "shadow rule\t%s: %s\n", s.Rule, wouldDo(&s))
	}
	fmt.Fprintf(tw, "outcome\t%s\n", x.Outcome)
	answer := "admitted"
	if !x.Admitted {
		answer = "denied"
	}
	if x.Why != "" {
		answer += " (" + x.Why + ")"
	}
	fmt.Fprintf(tw, "answer\t%s\n", answer)
	if x.Late {
		fmt.Fprintf(tw, "late\tlimits and balances are those last seen: the store is slow\n")
	}
	if x.Fallback != "" {
		fmt.Fprintf(tw, "fallback\t%s: the store is unavailable, so the policy answers\n", x.Fallback)
	}
	if len(x.Missed) > 0 {
		fmt.Fprintf(tw, "\nRULES BEFORE IT\tWHY NOT\n")
		for _, m := range x.Missed {
			fmt.Fprintf(tw, "%s\t%s\n", m.Rule, m.Why)
		}
	}
}

// wouldDo says whether a rule in shadow mode would deny.
func wouldDo(s *admin.Shadow) string {
	switch {
	case !s.WouldDeny:
		return "would admit"
	case s.Why != "":
		return "would deny (" + s.Why + ")"
	default:
		return "would deny"
	}
}

func writeLimits(tw *strings.Builder, title string, limits []admin.Limit, live bool) {
	if len(limits) == 0 {
		return
	}
	available := "WHEN FULL"
	if live {
		available = "AVAILABLE"
	}
	if title != "" {
		title = "\n" + title
	}
	fmt.Fprintf(tw, "%s\nENTITY\tRESOURCE\tLIMIT\tRATE\tFROM\tACTION\tAMOUNT\t%s\tENOUGH\n", title, available)
	for _, l := range limits {
		from := l.Source
		if l.Plan != "" {
			from = "plan " + l.Plan
		}
		fmt.Fprintf(tw, "%s%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%t\n", strings.Repeat("^ ", l.Level), l.Entity, l.Resource, l.Name, l.Rate, from, l.Action, l.Amount, l.Available, l.Enough)
	}
}
