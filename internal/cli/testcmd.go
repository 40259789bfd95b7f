package cli

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

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
It exits with 0 if every answer is as expected, 1 if one is not, and 2 if a file is wrong.

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
	suites := make([]testSuite, 0, len(sources))
	for _, s := range sources {
		suite, err := f.suite(cmd, s)
		if err != nil {
			return err
		}
		suites = append(suites, suite)
	}
	if err := report(cmd.OutOrStdout(), suites); err != nil {
		return command.Failed(err)
	}
	if n, _, _ := countFailed(suites); n > 0 {
		return command.Refused()
	}
	return nil
}

// suite runs the cases of a file.
func (f *testFlags) suite(cmd *cobra.Command, s manifest.Source) (testSuite, error) {
	file, problems := parseTestFile(s.Name, s.Data)
	if len(problems) > 0 {
		return testSuite{}, problems
	}
	from := f.Source
	if from.File == "" && !from.Demo && file.Config != "" {
		from.File = file.Config
		if !filepath.IsAbs(from.File) {
			from.File = filepath.Join(filepath.Dir(s.Name), from.File)
		}
	}
	cfg, err := from.Load()
	if err != nil {
		return testSuite{}, err
	}
	results, err := file.Run(cmd.Context(), cfg)
	return testSuite{File: file, Results: results}, command.Failed(err)
}
