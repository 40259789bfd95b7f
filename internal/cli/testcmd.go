package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/internal/cli/manifest"
	"github.com/ratelimit/ratelimit/internal/command"
)

type testFlags struct {
	command.Source

	output string
}

// NewTest returns the command test.
func NewTest() *cobra.Command {
	var f testFlags
	cmd := &cobra.Command{
		Use: "test FILE...", Short: "Run calls and expected answers against a configuration", ValidArgsFunction: offerFiles,
		Long: `test runs files of cases against a configuration, in memory and without a service. A case
is a list of steps: calls with the answers that they should have, and times to move on by.
A call that no rule matches is not as expected, unless the case expects rule: none. test exits
with 0 if every answer is as expected, 1 if one is not, and 2 if a file is wrong.

  config: ratelimit.yaml          # beside this file; --config wins
  cases:
  - name: a user has two requests a minute
    steps:
    - {call: shop user=ada, repeat: 2, expect: allowed}
    - {call: shop user=ada, expect: {answer: denied, limit: rpm, retry_after: 30s}}
    - {advance: 30s, call: shop user=ada, expect: {answer: allowed, remaining: 0}}`,
		Example: `  ratelimit test cases.yaml
  ratelimit test tests/ --config ratelimit.yaml -o junit > report.xml`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("%s needs a file of cases, or a directory of them", cmd.CommandPath())
			}
			return nil
		},
		RunE: f.run,
	}
	f.Flags(cmd)
	cmd.Flags().StringVarP(&f.output, "output", "o", "text", "text, tap or junit")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "tap", "junit"}, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	return cmd
}

// report returns the writer of a form of output.
func (f *testFlags) report() (func(io.Writer, []testSuite) error, error) {
	switch f.output {
	case "text":
		return writeTestText, nil
	case "tap":
		return writeTAP, nil
	case "junit":
		return writeJUnit, nil
	}
	return nil, fmt.Errorf("--output is %.100q; it must be text, tap or junit", f.output)
}

func (f *testFlags) run(cmd *cobra.Command, paths []string) error {
	report, err := f.report()
	if err != nil {
		return err
	}
	sources, err := manifest.Read(paths, cmd.InOrStdin())
	if err != nil {
		return err
	}
	runs := make([]testRun, 0, len(sources))
	for _, s := range sources {
		r, err := f.load(s)
		if err != nil {
			return err
		}
		runs = append(runs, r)
	}
	suites, broken := runTests(cmd.Context(), runs)
	if err := report(cmd.OutOrStdout(), suites); err != nil {
		return command.Failed(err)
	}
	if n, _, _ := countFailed(suites); n > 0 && broken == nil {
		return command.Refused()
	}
	return command.Failed(broken)
}

// testRun is a file of cases with the configuration that they are for.
type testRun struct {
	file *testFile
	cfg  *config.Config
}

// runTests runs the cases of all files. A run that breaks off has the outcome until then.
func runTests(ctx context.Context, runs []testRun) (suites []testSuite, err error) {
	for _, r := range runs {
		results, err := r.file.Run(ctx, r.cfg)
		suites = append(suites, testSuite{File: r.file, Results: results})
		if err != nil {
			return suites, err
		}
	}
	return suites, nil
}

// load reads a file of cases and its configuration.
func (f *testFlags) load(s manifest.Source) (r testRun, err error) {
	file, problems := parseTestFile(s.Name, s.Data)
	if len(problems) > 0 {
		return r, problems
	}
	from := f.Source
	if from.File == "" && !from.Demo && file.Config != "" {
		from.File = file.Config
		if !filepath.IsAbs(from.File) {
			from.File = filepath.Join(filepath.Dir(s.Name), from.File)
		}
	}
	cfg, err := from.Load()
	return testRun{file, cfg}, err
}
