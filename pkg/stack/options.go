package stack

import (
	"cmp"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Options are those of one stack. The zero value of each field but Name is its default.
// [Options.Check] says which values are allowed.
type Options struct {
	// Name is of the stack and of its table: 3 to 128 letters, digits and '-', first a letter.
	Name string `json:"name"`
	// Tags are put on the stack, and by CloudFormation on all that is in it.
	Tags map[string]string `json:"tags,omitempty"`
	// ExistingTable is for a table that is there already, such as one that another stack has left:
	// the stack refers to it, and neither changes nor deletes it.
	ExistingTable bool `json:"existing_table,omitempty"`
	// StreamARN is of the stream of an existing table. [Manager.Deploy] and [Manager.Update] look
	// it up; "" = a parameter of the template.
	StreamARN string `json:"stream_arn,omitempty"`
	// DeletionProtection has DynamoDB refuse to delete the table, and keeps the table when the
	// stack is deleted. The archive is kept anyway.
	DeletionProtection bool `json:"deletion_protection,omitempty"`
	// RecoveryDays is how many days back the table can be restored, 1 to 35; 0 = not at all.
	RecoveryDays int `json:"recovery_days,omitempty"`

	IAM        IAM        `json:"iam"`
	Alarms     Alarms     `json:"alarms"`
	Aggregator Aggregator `json:"aggregator"`
}

// IAM are the options of policies and roles.
type IAM struct {
	// Off creates no policy and no role, for accounts that allow neither.
	Off bool `json:"off,omitempty"`
	// Roles creates a role beside each policy of the whole table.
	Roles bool `json:"roles,omitempty"`
	// Trust says which callers may assume the roles: [TrustAccount] by default.
	Trust Trust `json:"trust,omitempty"`
	// Provider is the provider of OpenID Connect of an EKS cluster, and ServiceAccounts are those
	// of its pods that may assume the roles: with [TrustIRSA], which needs both.
	Provider        string   `json:"oidc_provider,omitempty"`    // ARN, or URL of the issuer: then a provider of the account
	ServiceAccounts []string `json:"service_accounts,omitempty"` // NAMESPACE/NAME, as many as fit into 2,048 characters
	// Boundary is the permission boundary of all roles: the name of a policy, or its ARN.
	Boundary string `json:"boundary,omitempty"`
	// RoleFormat and PolicyFormat name roles and policies; {} stands for the default name.
	// Without one CloudFormation chooses names.
	RoleFormat   string `json:"role_format,omitempty"`
	PolicyFormat string `json:"policy_format,omitempty"`
	// Process creates a policy for an aggregator that runs as a process, and with Roles a role.
	Process bool `json:"process,omitempty"`
	// ProcessArchive is where that process puts audit events, its --archive, such as s3://bucket/audit; "" = nowhere.
	ProcessArchive string `json:"process_archive,omitempty"`
	// Namespaces have policies of their own, at most 6.
	Namespaces []Namespace `json:"namespaces,omitempty"`
}

// Namespace is one that is registered when the stack is deployed, and has policies.
type Namespace struct {
	Name string `json:"name"`
	// ID is the namespace's in the table's keys: 11 letters, digits, '-' and '_'. "" = not
	// registered yet; there are no policies for it.
	ID string `json:"id,omitempty"`
}

// Trust says which callers may assume a role.
type Trust string

// The callers that may assume a role.
const (
	TrustAccount Trust = "account" // principals of the account, as their own policies allow
	TrustECS     Trust = "ecs"     // tasks of ECS
	TrustEC2     Trust = "ec2"     // instances of EC2
	TrustPods    Trust = "pods"    // pods of EKS, by Pod Identity
	TrustIRSA    Trust = "irsa"    // pods of EKS, by tokens of their ServiceAccounts
)

func trusts() []Trust { return []Trust{TrustAccount, TrustECS, TrustEC2, TrustPods, TrustIRSA} }

// Alarms are the options of CloudWatch's alarms.
type Alarms struct {
	// Off creates no alarm.
	Off bool `json:"off,omitempty"`
	// Topic is the ARN of a topic of SNS that alarms are sent to; "" = none.
	Topic string `json:"topic,omitempty"`
	// Throttles is how many throttled calls in a minute raise the table's alarms; 0 = 1.
	Throttles int `json:"throttles,omitempty"`
	// DurationPercent is the share of the aggregator's timeout that raises its alarm, 1 to 100; 0 = 80.
	DurationPercent int `json:"duration_percent,omitempty"`
	// LagSeconds is how old a record of the stream may be, 1 to 86400; 0 = 300.
	LagSeconds int `json:"lag_seconds,omitempty"`
}

// Aggregator are the options of the function that reads the table's stream.
type Aggregator struct {
	// On creates the function. It needs Code.
	On   bool `json:"on,omitempty"`
	Code Code `json:"code"`
	// RoleARN is of an existing role for the function; "" = the stack creates one.
	RoleARN string `json:"role_arn,omitempty"`
	// Architecture is that of the artifact: [ArchARM64] by default.
	Architecture Architecture `json:"architecture,omitempty"`
	// MemoryMiB is 128 to 3008; 0 = 256. TimeoutSeconds is 1 to 900; 0 = 60.
	MemoryMiB      int `json:"memory_mib,omitempty"`
	TimeoutSeconds int `json:"timeout_seconds,omitempty"`
	// LogDays is how long its log is kept: a number of days that CloudWatch allows; 0 = 30.
	LogDays int `json:"log_days,omitempty"`
	// Tracing has X-Ray trace the function.
	Tracing bool `json:"tracing,omitempty"`

	// Windows of usage: hour, day, month; none = all.
	Windows []string `json:"windows,omitempty"`
	// UsageDays is how long usage is kept after the end of its window, 1 to 3650; 0 = as each window's default says.
	UsageDays int `json:"usage_days,omitempty"`

	Archive Archive `json:"archive"`

	// Config is an object of S3 with a configuration, whose budgets the function watches, such as
	// s3://bucket/ratelimit.yaml; "" = it watches none.
	Config string `json:"config,omitempty"`
}

// Code is where the function's artifact is: a ZIP file in S3 with an executable bootstrap
// for Linux. Where Bucket and Key are empty, they are parameters of the template.
type Code struct {
	Bucket  string `json:"bucket,omitempty"`
	Key     string `json:"key,omitempty"`
	Version string `json:"version,omitempty"` // of the object; "" = the newest
}

// String returns the place of the artifact, with its version if there is one; "" = parameters.
func (c Code) String() string {
	switch {
	case c.Key == "":
		return ""
	case c.Version == "":
		return "s3://" + c.Bucket + "/" + c.Key
	default:
		return "s3://" + c.Bucket + "/" + c.Key + " version " + c.Version
	}
}

// Architecture is that of the processors of a function.
type Architecture string

// The architectures that releases have an artifact for.
const (
	ArchARM64 Architecture = "arm64"
	ArchAMD64 Architecture = "amd64"
)

// Archive are the options of the bucket for audit events that have expired.
type Archive struct {
	// Off creates no bucket.
	Off bool `json:"off,omitempty"`
	// GlacierDays is after how many days objects move to Glacier Instant Retrieval, 1 to 3650; 0 = 90.
	GlacierDays int `json:"glacier_days,omitempty"`
}

// Defaults of options that are 0.
const (
	defaultThrottles       = 1
	defaultDurationPercent = 80
	defaultLagSeconds      = 300
	defaultMemoryMiB       = 256
	defaultTimeoutSeconds  = 60
	defaultLogDays         = 30
	defaultGlacierDays     = 90
)

// withDefaults returns the options with every default in place.
func (o Options) withDefaults() Options {
	o.Alarms.Throttles = cmp.Or(o.Alarms.Throttles, defaultThrottles)
	o.Alarms.DurationPercent = cmp.Or(o.Alarms.DurationPercent, defaultDurationPercent)
	o.Alarms.LagSeconds = cmp.Or(o.Alarms.LagSeconds, defaultLagSeconds)
	o.Aggregator.MemoryMiB = cmp.Or(o.Aggregator.MemoryMiB, defaultMemoryMiB)
	o.Aggregator.TimeoutSeconds = cmp.Or(o.Aggregator.TimeoutSeconds, defaultTimeoutSeconds)
	o.Aggregator.LogDays = cmp.Or(o.Aggregator.LogDays, defaultLogDays)
	o.Aggregator.Archive.GlacierDays = cmp.Or(o.Aggregator.Archive.GlacierDays, defaultGlacierDays)
	o.IAM.Trust = cmp.Or(o.IAM.Trust, TrustAccount)
	o.Aggregator.Architecture = cmp.Or(o.Aggregator.Architecture, ArchARM64)
	if len(o.Aggregator.Windows) == 0 {
		o.Aggregator.Windows = windowNames()
	}
	return o
}

// windowNames returns the windows of usage.
func windowNames() []string {
	windows := limiter.UsageWindows()
	names := make([]string, len(windows))
	for i, w := range windows {
		names[i] = w.String()
	}
	return names
}
