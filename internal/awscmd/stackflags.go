package awscmd

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/pkg/stack"
)

const (
	// defaultStack is the name of a stack, and of store.dynamodb.table.
	defaultStack = "ratelimit"
	// localStackInterval is between two reads of a stack of an emulator.
	localStackInterval = 100 * time.Millisecond
)

// stackOptions are the options of a stack by flags. Options that are not given keep the
// values of a deployed stack.
type stackOptions struct {
	given      stack.Options
	namespaces []string
	code       string
	fields     []stackField
}

// stackField is a flag of one option.
type stackField struct {
	flag string
	set  func(to *stack.Options) error // to the given value
}

// flags adds a flag for every option.
func (s *stackOptions) flags(cmd *cobra.Command) {
	s.general(cmd)
	s.iam(cmd)
	s.alarms(cmd)
	s.aggregator(cmd)
}

// apply sets the options whose flags were given.
func (s *stackOptions) apply(cmd *cobra.Command, to *stack.Options) error {
	for _, f := range s.fields {
		if cmd.Flags().Changed(f.flag) {
			if err := f.set(to); err != nil {
				return fmt.Errorf("--%s: %w", f.flag, err)
			}
		}
	}
	return nil
}

// option binds a flag to the option that field returns.
func option[T any](s *stackOptions, add func(p *T, name string, value T, usage string), flag string, field func(*stack.Options) *T, usage string) {
	var zero T
	add(field(&s.given), flag, zero, usage)
	s.fields = append(s.fields, stackField{flag, func(to *stack.Options) error {
		*field(to) = *field(&s.given)
		return nil
	}})
}

// none adds a flag that clears an option, in place of the flag that sets it.
func (s *stackOptions) none(cmd *cobra.Command, flag, other string, take func(*stack.Options), usage string) {
	given := cmd.Flags().Bool(flag, false, usage)
	cmd.MarkFlagsMutuallyExclusive(flag, other)
	s.fields = append(s.fields, stackField{flag, func(to *stack.Options) error {
		if *given {
			take(to)
		}
		return nil
	}})
}

func (s *stackOptions) general(cmd *cobra.Command) {
	f := cmd.Flags()
	option(s, f.StringToStringVar, "tag", func(o *stack.Options) *map[string]string { return &o.Tags }, "KEY=VALUE: tags of the stack and of all in it; they replace those it has")
	s.none(cmd, "no-tags", "tag", func(o *stack.Options) { o.Tags = nil }, "take the tags of the options away")
	option(s, f.BoolVar, "existing-table", func(o *stack.Options) *bool { return &o.ExistingTable }, "at deployment: leave a table that is there as it is, and create the rest")
	option(s, f.BoolVar, "deletion-protection", func(o *stack.Options) *bool { return &o.DeletionProtection }, "keep the table when the stack is deleted, and have DynamoDB refuse to delete it")
	option(s, f.IntVar, "recovery-days", func(o *stack.Options) *int { return &o.RecoveryDays }, "days back to which the table can be restored, 1 to 35; 0 = none")
}

func (s *stackOptions) iam(cmd *cobra.Command) {
	f := cmd.Flags()
	option(s, f.BoolVar, "no-iam", func(o *stack.Options) *bool { return &o.IAM.Off }, "create no policies and no roles")
	option(s, f.BoolVar, "roles", func(o *stack.Options) *bool { return &o.IAM.Roles }, "create a role beside each policy of the whole table")
	f.StringVar((*string)(&s.given.IAM.Trust), "trust", "", "callers that may assume the roles: account, ecs, ec2, pods or irsa (default account)")
	s.fields = append(s.fields, stackField{"trust", func(to *stack.Options) error {
		to.IAM.Trust = s.given.IAM.Trust
		return nil
	}})
	option(s, f.StringVar, "oidc-provider", func(o *stack.Options) *string { return &o.IAM.Provider }, "of the cluster, for the trust irsa: ARN of the provider, or URL of its issuer")
	option(s, f.StringSliceVar, "service-account", func(o *stack.Options) *[]string { return &o.IAM.ServiceAccounts }, "NAMESPACE/NAME of a ServiceAccount that may assume the roles, for the trust irsa; repeatable; they replace those it has")
	option(s, f.StringVar, "permission-boundary", func(o *stack.Options) *string { return &o.IAM.Boundary }, "name or ARN of the permission boundary of the roles")
	option(s, f.StringVar, "role-name-format", func(o *stack.Options) *string { return &o.IAM.RoleFormat }, "names of roles, with {} for the default name (default: CloudFormation chooses)")
	option(s, f.StringVar, "policy-name-format", func(o *stack.Options) *string { return &o.IAM.PolicyFormat }, "names of policies, with {} for the default name (default: CloudFormation chooses)")
	option(s, f.BoolVar, "aggregate-policy", func(o *stack.Options) *bool { return &o.IAM.Process }, "create a policy for the command aggregate as a process, and with --roles a role")
	option(s, f.StringVar, "aggregate-archive", func(o *stack.Options) *string { return &o.IAM.ProcessArchive }, "s3://BUCKET/PREFIX: the archive of that process (default: none)")
	f.StringArrayVar(&s.namespaces, "namespace", nil, "NAME: register it, and create policies for it alone; repeatable; they replace those it has. For template: NAME=ID")
	s.fields = append(s.fields, stackField{"namespace", s.setNamespaces})
	s.none(cmd, "no-namespaces", "namespace", func(o *stack.Options) { o.IAM.Namespaces = nil }, "take the policies of all namespaces away; the namespaces stay registered")
}

func (s *stackOptions) alarms(cmd *cobra.Command) {
	f := cmd.Flags()
	option(s, f.BoolVar, "no-alarms", func(o *stack.Options) *bool { return &o.Alarms.Off }, "create no alarms")
	option(s, f.StringVar, "alarm-topic", func(o *stack.Options) *string { return &o.Alarms.Topic }, "ARN of the topic of SNS that alarms are sent to")
	option(s, f.IntVar, "alarm-throttles", func(o *stack.Options) *int { return &o.Alarms.Throttles }, "throttled calls in a minute that raise an alarm (default 1)")
	option(s, f.IntVar, "alarm-duration-percent", func(o *stack.Options) *int { return &o.Alarms.DurationPercent }, "share of the aggregator's timeout that raises an alarm (default 80)")
	option(s, f.IntVar, "alarm-lag-seconds", func(o *stack.Options) *int { return &o.Alarms.LagSeconds }, "age of a record of the stream that raises an alarm (default 300)")
}

func (s *stackOptions) aggregator(cmd *cobra.Command) {
	f := cmd.Flags()
	option(s, f.BoolVar, "aggregator", func(o *stack.Options) *bool { return &o.Aggregator.On }, "create the aggregator of the stream; needs --aggregator-code")
	f.StringVar(&s.code, "aggregator-code", "", "s3://BUCKET/KEY of the aggregator's artifact")
	s.fields = append(s.fields, stackField{"aggregator-code", s.setCode})
	option(s, f.StringVar, "aggregator-code-version", func(o *stack.Options) *string { return &o.Aggregator.Code.Version }, "version of that object (default: the newest at the time; a later one under the same key is not deployed by update)")
	option(s, f.StringVar, "aggregator-role", func(o *stack.Options) *string { return &o.Aggregator.RoleARN }, "ARN of an existing role for the aggregator (default: the stack creates one)")
	f.StringVar((*string)(&s.given.Aggregator.Architecture), "aggregator-architecture", "", "of the artifact: arm64 or amd64 (default arm64)")
	s.fields = append(s.fields, stackField{"aggregator-architecture", func(to *stack.Options) error {
		to.Aggregator.Architecture = s.given.Aggregator.Architecture
		return nil
	}})
	option(s, f.IntVar, "aggregator-memory", func(o *stack.Options) *int { return &o.Aggregator.MemoryMiB }, "its memory in MiB, 128 to 3008 (default 256)")
	option(s, f.IntVar, "aggregator-timeout", func(o *stack.Options) *int { return &o.Aggregator.TimeoutSeconds }, "its timeout in seconds, 1 to 900 (default 60)")
	option(s, f.IntVar, "log-retention-days", func(o *stack.Options) *int { return &o.Aggregator.LogDays }, "days that its log is kept (default 30)")
	option(s, f.BoolVar, "tracing", func(o *stack.Options) *bool { return &o.Aggregator.Tracing }, "have X-Ray trace it")
	option(s, f.StringSliceVar, "usage-windows", func(o *stack.Options) *[]string { return &o.Aggregator.Windows }, "windows of usage: hour, day, month (default all)")
	option(s, f.IntVar, "usage-retention-days", func(o *stack.Options) *int { return &o.Aggregator.UsageDays }, "days that usage of every window is kept after its end (default hour=14, day=400, month for good)")
	option(s, f.StringVar, "aggregator-config", func(o *stack.Options) *string { return &o.Aggregator.Config }, "s3://BUCKET/KEY of a configuration, whose budgets it watches (default: none)")
	option(s, f.BoolVar, "no-archive", func(o *stack.Options) *bool { return &o.Aggregator.Archive.Off }, "create no bucket for expired audit events")
	option(s, f.IntVar, "archive-glacier-days", func(o *stack.Options) *int { return &o.Aggregator.Archive.GlacierDays }, "days until archived events move to Glacier (default 90)")
}

// namespaceWithID is a namespace whose id is known.
var namespaceWithID = regexp.MustCompile(`^(.+)=([A-Za-z0-9_-]{11})$`)

// setNamespaces sets the namespaces. Those that the stack has already keep their ids.
func (s *stackOptions) setNamespaces(to *stack.Options) error {
	namespaces := make([]stack.Namespace, 0, len(s.namespaces))
	for _, text := range s.namespaces {
		n := stack.Namespace{Name: text}
		if m := namespaceWithID.FindStringSubmatch(text); m != nil {
			n = stack.Namespace{Name: m[1], ID: m[2]}
		}
		if i := slices.IndexFunc(to.IAM.Namespaces, func(old stack.Namespace) bool { return old.Name == n.Name }); i >= 0 && n.ID == "" {
			n.ID = to.IAM.Namespaces[i].ID
		}
		namespaces = append(namespaces, n)
	}
	to.IAM.Namespaces = namespaces
	return nil
}

// setCode sets where the artifact is.
func (s *stackOptions) setCode(to *stack.Options) error {
	rest, found := strings.CutPrefix(s.code, "s3://")
	bucket, key, cut := strings.Cut(rest, "/")
	if !found || !cut || bucket == "" || key == "" {
		return fmt.Errorf("%.200q; it must be s3://BUCKET/KEY", s.code)
	}
	to.Aggregator.Code = stack.Code{Bucket: bucket, Key: key, Version: to.Aggregator.Code.Version}
	return nil
}
