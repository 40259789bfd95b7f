package stack

import (
	"regexp"
	"strings"
)

const (
	logicalProcess = "Aggregate"

	streamKeys = "_/STREAM#*" // leases of the stream's shards
)

// archiveForm is a place in S3, as --archive of `ratelimit aggregate` has it.
var archiveForm = regexp.MustCompile(`^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9!_.'()/-]{0,200})?$`)

// addProcess adds the policy of an aggregator that runs as a process, such as in pods, and its role
// if roles are asked for.
func (t *builder) addProcess() {
	if !t.o.IAM.Process {
		return
	}
	policy := logicalProcess + "Policy"
	t.policy(policy, processComponent, "", t.process())
	if t.o.IAM.Roles {
		t.role(logicalProcess+"Role", processComponent, t.trust(), object{"ManagedPolicyArns": []any{ref(policy)}})
	}
}

// process allows the calls of `ratelimit aggregate`. It reads the stream, and shares its shards with
// others. It writes usage, reads stored limits for their budgets, and puts objects into the
// archive. Of buckets it finishes splits. It tells replicas how far it is. It reads no secret of the table.
func (t *builder) process() policyDocument {
	data := t.scope(anySpace)
	statements := []statement{
		data.describe(),
		allow("Registry", []string{"GetItem", "Query"}, data.table).on(registryKeys),
		allow("Limits", []string{"BatchGetItem"}, data.table).on(data.of("SYSTEM#", "ENTITY#*", "RESOURCE#*")...),
		allow("Usage", []string{"UpdateItem"}, data.table).on(data.of("ENTITY#*")...),
		allow("Splits", []string{"GetItem", "PutItem", "UpdateItem"}, data.table).on(data.of("BUCKET#*")...),
		allow("Leases", []string{"Query", "PutItem"}, data.table).on(streamKeys),
		allow("Report", []string{"PutItem"}, data.table).on(progressKeys),
		allow("Stream", []string{"DescribeStream", "GetRecords", "GetShardIterator"}, t.stream()),
	}
	if place, ok := strings.CutPrefix(t.o.IAM.ProcessArchive, "s3://"); ok {
		statements = append(statements, allowed("Archive", sub("arn:${AWS::Partition}:s3:::"+strings.TrimSuffix(place, "/")+"/*"), "s3:PutObject"))
	}
	return document(statements...)
}

func (c *checker) process(i IAM) {
	c.want(i.ProcessArchive == "" || archiveForm.MatchString(i.ProcessArchive), "iam.process_archive is %.200q; it must be s3://BUCKET or s3://BUCKET/PREFIX", i.ProcessArchive)
	c.want(i.ProcessArchive == "" || i.Process, "iam.process_archive is of the policy of iam.process, which is off")
	c.want(!i.Process || !i.Off, "iam.off creates no roles and policies; iam.process needs them")
}
