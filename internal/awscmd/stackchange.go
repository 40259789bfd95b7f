package awscmd

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/stack"
)

// stackName returns the stack that a command is about.
func stackName(args []string) string {
	if len(args) == 0 {
		return defaultStack
	}
	return args[0]
}

func newStackDeploy() *cobra.Command {
	var target stackTarget
	var options stackOptions
	cmd := &cobra.Command{
		Use:   "deploy [NAME]",
		Short: "Create a stack",
		Long: `deploy creates a stack with the table NAME (default ratelimit), and prepares the table for
replicas. It prints the events of CloudFormation and then the outputs of the stack. A stack
that cannot be created is removed again, and the error names the resource and the reason.`,
		Example: "  ratelimit stack deploy --deletion-protection --recovery-days 7 --namespace web",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o := stack.Options{Name: stackName(args)}
			if err := options.apply(cmd, &o); err != nil {
				return err
			}
			manager, err := target.manager(cmd.Context(), cmd)
			if err != nil {
				return err
			}
			info, err := manager.Deploy(cmd.Context(), o)
			return changed(cmd, info, err)
		},
	}
	target.flags(cmd)
	options.flags(cmd)
	return cmd
}

func newStackUpdate() *cobra.Command {
	var target stackTarget
	var options stackOptions
	cmd := &cobra.Command{
		Use:   "update [NAME]",
		Short: "Change options of a stack, and bring it to this version",
		Long: `update renders the template of this version with the options that the stack has and with
those that are given. A stack that has all that already stays as it is.`,
		Example: "  ratelimit stack update --alarm-topic arn:aws:sns:eu-central-1:123456789012:pages",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			manager, err := target.manager(cmd.Context(), cmd)
			if err != nil {
				return err
			}
			info, err := manager.Update(cmd.Context(), stackName(args), func(o *stack.Options) error { return options.apply(cmd, o) })
			return changed(cmd, info, err)
		},
	}
	target.flags(cmd)
	options.flags(cmd)
	return cmd
}

// changed prints the outputs of a stack that was changed, or returns the error of the change.
func changed(cmd *cobra.Command, info stack.Info, err error) error {
	if err != nil {
		return stackFailed(err)
	}
	return command.Failed(printOutputs(cmd, info))
}

func newStackDelete() *cobra.Command {
	var target stackTarget
	var yes, keep bool
	cmd := &cobra.Command{
		Use:   "delete [NAME]",
		Short: "Delete a stack",
		Long: `delete deletes a stack and its table. A stack with deletion protection needs --keep-data,
and leaves its table. The archive of audit events is always left. The output names both.`,
		Example: "  ratelimit stack delete --yes",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := stackName(args)
			if !yes {
				return fmt.Errorf("this deletes stack %s; say so with --yes", name)
			}
			manager, err := target.manager(cmd.Context(), cmd)
			if err != nil {
				return err
			}
			left, err := manager.Delete(cmd.Context(), name, keep)
			if err != nil {
				return stackFailed(err)
			}
			message := "stack " + name + " is deleted"
			if len(left) > 0 {
				message += "; left: " + strings.Join(left, ", ")
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), message)
			return command.Failed(err)
		},
	}
	target.flags(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "delete it without a question")
	cmd.Flags().BoolVar(&keep, "keep-data", false, "leave the table of a stack with deletion protection")
	return cmd
}

func newStackTemplate() *cobra.Command {
	var options stackOptions
	var output string
	cmd := &cobra.Command{
		Use:   "template [NAME]",
		Short: "Print the template of a stack",
		Long: `template prints the template that deploy would use. It contacts no server. Replicas with
take-only policies need a table that deploy, or a replica with full access, has prepared.`,
		Example: "  ratelimit stack template --recovery-days 7 > stack.yaml",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o := stack.Options{Name: stackName(args)}
			if err := options.apply(cmd, &o); err != nil {
				return err
			}
			template, err := stack.Render(o)
			if err != nil {
				return stackFailed(err)
			}
			text, err := template.YAML()
			if output == command.OutputJSON {
				text, err = template.JSON()
			}
			if err != nil {
				return command.Failed(err)
			}
			_, err = cmd.OutOrStdout().Write(text)
			return command.Failed(err)
		},
	}
	options.flags(cmd)
	outputFlag(cmd, &output, command.OutputYAML, command.OutputYAML, command.OutputJSON)
	return cmd
}

func newStackPrepare() *cobra.Command {
	var target stackTarget
	var names []string
	cmd := &cobra.Command{
		Use:   "prepare [TABLE]",
		Short: "Prepare a table that another tool created",
		Long: `prepare puts the schema version into a table and registers namespaces, as deploy does, and
prints their names and ids. Replicas with take-only policies need it. It changes nothing
that is there.`,
		Example: "  ratelimit stack prepare limits --namespace default --namespace web",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := dynamo.NewClient(cmd.Context(), dynamo.ClientConfig{Region: target.region, Endpoint: target.endpoint})
			if err != nil {
				return err
			}
			namespaces, err := stack.Prepare(cmd.Context(), client, stackName(args), names, time.Now())
			if err != nil {
				return command.Failed(err)
			}
			for _, n := range namespaces {
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s=%s\n", n.Name, n.ID); err != nil {
					return command.Failed(err)
				}
			}
			return nil
		},
	}
	target.flags(cmd)
	cmd.Flags().StringArrayVar(&names, "namespace", []string{limiter.DefaultNamespace}, "NAME: register it; repeatable")
	return cmd
}
