package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/admin"
)

type explainFlags struct {
	command.Source
	connection
	hits   uint64
	output string

	file     string // of a whole call; "" = the arguments are a descriptor
	live     bool   // ask the service that commands of administration ask
	data     string // data directory of the service to ask; "" = none was named
	watch    bool
	interval time.Duration

	runs bool // a service of the configuration runs, and was not asked
}

// NewExplain returns the command explain.
func NewExplain() *cobra.Command {
	var f explainFlags
	cmd := &cobra.Command{
		Use:   "explain DOMAIN KEY=VALUE... | -f REQUEST",
		Short: "Show the effect of a descriptor or a call, and why",
		Long: `explain shows the rule that a descriptor meets, why the rules before it do not match,
the buckets it takes from, and where each number comes from. It takes nothing. Of a
descriptor that no rule matches it shows the nearest rule; of a rule in shadow mode, its
limits and whether it would deny.

Without --live, --server, --context or --data it reads the configuration, and every bucket
is full. With --live it asks the running service that get and list ask, for the balances as
they are; --server, --context and --data name one. With -f it explains a whole call, a
RateLimitRequest in JSON as Envoy and /json have it: descriptors are admitted together or not
at all.`,
		Example: `  ratelimit explain llm-gateway api_key=k-123 model=gpt-4
  ratelimit explain --live llm-gateway api_key=k-123 model=gpt-4
  ratelimit explain --context production --watch shop user=ada
  ratelimit explain --server http://127.0.0.1:8080 -f request.json`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case f.file != "" && len(args) > 0:
				return fmt.Errorf("-f has the whole call: leave out %q", args[0])
			case f.file != "":
				return nil
			}
			if len(args) < 2 {
				return errors.New("explain needs a domain and at least one KEY=VALUE, such as: ratelimit explain llm-gateway api_key=k-123 model=gpt-4")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ask, err := f.asker(cmd, args)
			if err != nil {
				return err
			}
			err = f.show(cmd.Context(), ask, cmd.OutOrStdout())
			if f.runs {
				cmd.PrintErrln("note: this is the answer of the file alone, without stored limits and balances: a service with this file runs here, and --live asks it")
			}
			return err
		},
	}
	f.Flags(cmd)
	f.flags(cmd.Flags(), "address of a running service: its HTTP side, such as http://127.0.0.1:8080, or its admin listener, unix:///PATH")
	cmd.Flags().BoolVar(&f.live, "live", false, "ask the running service that get and list ask, found in the same way")
	cmd.Flags().StringVar(&f.data, "data", "", "data directory of the service to ask")
	cmd.Flags().Uint64Var(&f.hits, "hits", 1, "hits_addend of the descriptor; 0 is a look")
	cmd.Flags().StringVarP(&f.file, "filename", "f", "", "file with a RateLimitRequest in JSON, or - for the standard input")
	cmd.Flags().BoolVarP(&f.watch, "watch", "w", false, "ask a running service again and again, until the command is interrupted")
	cmd.Flags().DurationVar(&f.interval, "interval", 2*time.Second, "time from one answer of --watch to the next, at least 100ms")
	cmd.Flags().StringVarP(&f.output, "output", "o", "table", "table, wide or json; wide shows the shards of each bucket")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(explainOutputs(), cobra.ShellCompDirectiveNoFileComp)) // the flag is there
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
