package awscmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/stack"
)

// NewStack returns the commands on stacks of CloudFormation.
func NewStack() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "stack",
		Short: "Deploy the table of a fleet, its policies and alarms with CloudFormation",
		Long: `stack manages stacks of CloudFormation. A stack has the table of a fleet, managed policies
for replicas and people, alarms, and on request roles and the aggregator of the table's
stream. The stack and its table have one name.

  ratelimit stack deploy                     create the stack
  ratelimit stack update --recovery-days 7   change options, and bring it to this version
  ratelimit stack status                     health, versions, the table, ARNs of policies
  ratelimit stack template                   print the template, for other tools`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newStackDeploy(), newStackUpdate(), newStackDelete(), newStackStatus(), newStackList(), newStackTemplate(), newStackPrepare())
	return cmd
}

// stackTarget is where stacks are.
type stackTarget struct{ region, endpoint string }

func (s *stackTarget) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.region, "region", "", "AWS region (default: that of the environment)")
	cmd.Flags().StringVar(&s.endpoint, "endpoint", "", "URL of CloudFormation and DynamoDB, for emulators (default: those of the region)")
}

// manager returns a manager of stacks. Events are printed to the command's error stream.
func (s *stackTarget) manager(ctx context.Context, cmd *cobra.Command) (*stack.Manager, error) {
	api, err := stack.NewClient(ctx, s.region, s.endpoint)
	if err != nil {
		return nil, err
	}
	table, err := dynamo.NewClient(ctx, dynamo.ClientConfig{Region: api.Options().Region, Endpoint: s.endpoint})
	if err != nil {
		return nil, err
	}
	cfg := stack.Config{API: api, Table: table, Version: command.Version(), Progress: func(e stack.Event) {
		line := fmt.Sprintf("%s  %-28s %s (%s)", e.Time.UTC().Format("15:04:05"), e.Status, e.Resource, e.Kind)
		if e.Reason != "" {
			line += ": " + e.Reason
		}
		cmd.PrintErrln(line)
	}}
	if dynamo.IsLocalEndpoint(s.endpoint) {
		cfg.Interval = localStackInterval
	}
	return stack.NewManager(cfg), nil
}

// stackFailed returns an error of a stack with the exit code that it stands for.
func stackFailed(err error) error {
	if errors.Is(err, stack.ErrInvalid) {
		return err
	}
	return command.Failed(err)
}
