package stack

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

const (
	maxNamespace  = 200  // bytes of the name of a namespace
	maxNamespaces = 6    // with policies of their own; a template has 51,200 bytes
	maxDays       = 3650 // of retention
)

// logDays are the days of retention that CloudWatch allows.
var logDays = []int{1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653}

var (
	nameForm   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]{2,127}$`)
	idForm     = regexp.MustCompile(`^[A-Za-z0-9_-]{11}$`)
	topicForm  = regexp.MustCompile(`^arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_.-]{1,256}$`)
	roleForm   = regexp.MustCompile(`^arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]{1,512}$`)
	policyForm = regexp.MustCompile(`^arn:aws[a-z-]*:iam::(?:\d{12}|aws):policy/[\w+=,.@/-]{1,512}$`)
	streamForm = regexp.MustCompile(`^arn:aws[a-z-]*:dynamodb:[a-z0-9-]+:\d{12}:table/[A-Za-z0-9_.-]+/stream/[0-9T:.-]+$`)
	// configForm has no characters that a policy's resource takes for more than themselves.
	configForm = regexp.MustCompile(`^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/[A-Za-z0-9._=/-]{0,511}[A-Za-z0-9._=-]$`)
	bucketForm = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
)

// Check reports every mistake in the options at once. The errors wrap [ErrInvalid].
func (o Options) Check() error {
	c := &checker{}
	c.want(nameForm.MatchString(o.Name), "name is %.150q; it must be 3 to 128 letters, digits and '-', and begin with a letter", o.Name)
	c.between("recovery_days", o.RecoveryDays, 1, 35)
	c.want(!o.ExistingTable || !o.DeletionProtection && o.RecoveryDays == 0, "existing_table is for a table that the stack does not change: deletion_protection and recovery_days must be off")
	c.want(o.StreamARN == "" || o.ExistingTable, "stream_arn is of a table with existing_table")
	c.want(o.StreamARN == "" || streamForm.MatchString(o.StreamARN), "stream_arn is %.200q; it must be the ARN of a stream of DynamoDB", o.StreamARN)
	c.tags(o.Tags)
	c.iam(o)
	c.alarms(o.Alarms)
	c.aggregator(o)
	return errors.Join(c.problems...)
}

func (c *checker) iam(o Options) {
	i := o.IAM
	c.trust(i)
	c.want(i.Boundary == "" || policyForm.MatchString(i.Boundary) || iamNameForm.MatchString(i.Boundary) && len(i.Boundary) <= maxPolicyName,
		"iam.boundary is %.200q; it must be the name or the ARN of a policy", i.Boundary)
	c.want(!i.Off || !i.Roles && len(i.Namespaces) == 0, "iam.off creates no roles and policies; iam.roles and iam.namespaces need them")
	c.process(i)
	c.format("iam.role_format", i.RoleFormat)
	c.format("iam.policy_format", i.PolicyFormat)
	c.want(len(i.Namespaces) <= maxNamespaces, "iam.namespaces has %d; at most %d can have policies", len(i.Namespaces), maxNamespaces)
	seen := map[string]bool{}
	for _, n := range i.Namespaces {
		c.want(n.Name != "" && len(n.Name) <= maxNamespace, "iam.namespaces has the name %.200q; it must be 1 to %d bytes", n.Name, maxNamespace)
		c.want(!seen[n.Name], "iam.namespaces has %.200q twice", n.Name)
		seen[n.Name] = true
		c.want(n.ID == "" || idForm.MatchString(n.ID), "iam.namespaces has the id %.50q; it must be 11 letters, digits, '-' and '_'", n.ID)
	}
	if len(c.problems) == 0 {
		c.names(o)
	}
}

func (c *checker) alarms(a Alarms) {
	c.want(a.Topic == "" || topicForm.MatchString(a.Topic), "alarms.topic is %.200q; it must be the ARN of a topic of SNS", a.Topic)
	c.between("alarms.throttles", a.Throttles, 1, 1_000_000)
	c.between("alarms.duration_percent", a.DurationPercent, 1, 100)
	c.between("alarms.lag_seconds", a.LagSeconds, 1, 24*60*60)
}

func (c *checker) aggregator(o Options) {
	a := o.Aggregator
	c.between("aggregator.memory_mib", a.MemoryMiB, 128, 3008)
	c.between("aggregator.timeout_seconds", a.TimeoutSeconds, 1, 900)
	c.want(a.LogDays == 0 || slices.Contains(logDays, a.LogDays), "aggregator.log_days is %d; CloudWatch allows %s", a.LogDays, strings.Trim(fmt.Sprint(logDays), "[]"))
	c.between("aggregator.usage_days", a.UsageDays, 1, maxDays)
	c.between("aggregator.archive.glacier_days", a.Archive.GlacierDays, 1, maxDays)
	c.want(a.RoleARN == "" || roleForm.MatchString(a.RoleARN), "aggregator.role_arn is %.200q; it must be the ARN of a role", a.RoleARN)
	c.want(slices.Contains([]Architecture{"", ArchARM64, ArchAMD64}, a.Architecture), "aggregator.architecture is %.50q; it must be arm64 or amd64", a.Architecture)
	for i, w := range a.Windows {
		c.want(slices.Contains(windowNames(), w), "aggregator.windows has %.50q; it must be hour, day or month", w)
		c.want(!slices.Contains(a.Windows[:i], w), "aggregator.windows has %.50q twice", w)
	}
	c.want((a.Code.Bucket == "") == (a.Code.Key == ""), "aggregator.code needs a bucket and a key, or neither")
	c.want(a.Code.Bucket == "" || bucketForm.MatchString(a.Code.Bucket), "aggregator.code.bucket is %.100q; it must be the name of a bucket of S3", a.Code.Bucket)
	c.want(len(a.Code.Key) <= 1024 && len(a.Code.Version) <= 1024, "aggregator.code: key and version must be at most 1024 bytes")
	c.want(a.Code.Version == "" || a.Code.Key != "", "aggregator.code.version needs a bucket and a key")
	c.want(a.Config == "" || configForm.MatchString(a.Config),
		"aggregator.config is %.200q; it must be an object of S3, such as s3://bucket/ratelimit.yaml, of letters, digits and . _ = / -", a.Config)
	c.want(a.Config == "" || a.On, "aggregator.config is for the function: it needs aggregator.on")
	c.want(!a.On || !o.IAM.Off || a.RoleARN != "", "aggregator.on with iam.off needs aggregator.role_arn, a role that exists")
}
