package stack_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/stack"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// cloud acts as CloudFormation with one stack, its table and its archive. Each read of a stack takes
// its next event.
type cloud struct {
	stack.API // for the methods that are not needed

	stack  *types.Stack
	body   string
	events []types.StackEvent // newest first
	script []types.StackEvent // still to come; the last one gives the stack its status
	failed []types.StackEvent // the script of the next change, in place of success
	calls  []string

	db      *tables
	objects int  // in the archive
	spoil   bool // a table that is made has the version of a newer program
}

// tables are those that the cloud has. Each has a stream.
type tables struct{ *dynamofake.DB }

func (t *tables) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, o ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	out, err := t.DB.DescribeTable(ctx, in, o...)
	if err == nil {
		out.Table.LatestStreamArn = aws.String("arn:aws:dynamodb:eu-central-1:123456789012:table/" + *in.TableName + "/stream/2026-11-22T20:38:42.002")
	}
	return out, err
}

// resourceOf is a resource of a template.
type resourceOf struct {
	Type           string         `json:"Type"`
	DeletionPolicy string         `json:"DeletionPolicy"`
	Properties     map[string]any `json:"Properties"`
}

// Protected reports whether DynamoDB refuses to delete the table.
func (r resourceOf) Protected() bool { return r.Properties["DeletionProtectionEnabled"] == true }

func (c *cloud) resources() map[string]resourceOf {
	var template struct {
		Resources map[string]resourceOf `json:"Resources"`
	}
	_ = json.Unmarshal([]byte(c.body), &template) // bodies of tests that are no templates have none
	return template.Resources
}

func (c *cloud) table() resourceOf { return c.resources()["Table"] }

// happen adds an event, and sets the stack's status if it is about the stack.
func (c *cloud) happen(e types.StackEvent) {
	e.EventId = aws.String(fmt.Sprint("event-", len(c.events)))
	e.Timestamp = aws.Time(time.Now())
	c.events = slices.Insert(c.events, 0, e)
	if aws.ToString(e.ResourceType) == "AWS::CloudFormation::Stack" {
		c.stack.StackStatus = types.StackStatus(e.ResourceStatus)
	}
}

func event(kind, name, status, reason string) types.StackEvent {
	e := types.StackEvent{ResourceType: aws.String(kind), LogicalResourceId: aws.String(name), ResourceStatus: types.ResourceStatus(status)}
	if reason != "" {
		e.ResourceStatusReason = aws.String(reason)
	}
	return e
}

func ofStack(status, reason string) types.StackEvent {
	return event("AWS::CloudFormation::Stack", "limits", status, reason)
}

// begin starts a change of the stack.
func (c *cloud) begin(verb string) {
	c.calls = append(c.calls, verb)
	c.happen(ofStack(verb+"_IN_PROGRESS", "User Initiated"))
	c.script = []types.StackEvent{event("AWS::DynamoDB::Table", "Table", verb+"_COMPLETE", ""), ofStack(verb+"_COMPLETE", "")}
	if c.failed != nil {
		c.script, c.failed = c.failed, nil
	}
}

func (c *cloud) CreateStack(ctx context.Context, in *cloudformation.CreateStackInput, _ ...func(*cloudformation.Options)) (*cloudformation.CreateStackOutput, error) {
	if c.stack != nil && c.stack.StackStatus != "DELETE_COMPLETE" {
		return nil, &types.AlreadyExistsException{}
	}
	c.stack = &types.Stack{StackName: in.StackName, StackId: aws.String("id-of-" + *in.StackName), Tags: in.Tags, CreationTime: aws.Time(time.Now())}
	c.body = *in.TemplateBody
	fails := c.failed != nil
	c.begin("CREATE")
	if err := c.make(ctx); err != nil {
		return nil, err
	}
	if fails {
		c.remove(func(r resourceOf) bool { return r.DeletionPolicy == "Retain" })
	}
	return &cloudformation.CreateStackOutput{StackId: c.stack.StackId}, nil
}

// make makes the archive and the table of the template.
func (c *cloud) make(ctx context.Context) error {
	if c.resources()["AuditArchive"].Type != "" {
		c.stack.Outputs = []types.Output{{OutputKey: aws.String("AuditArchiveBucket"), OutputValue: aws.String("bucket-of-limits")}}
	}
	if c.table().Type == "" {
		return nil
	}
	err := dynamo.CreateTable(ctx, c.db, "limits")
	if err == nil && c.spoil {
		_, err = c.db.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("limits"), Item: map[string]dbtypes.AttributeValue{
			"PK": &dbtypes.AttributeValueMemberS{Value: "_/SYSTEM#"}, "SK": &dbtypes.AttributeValueMemberS{Value: "#VERSION"}, "schema_version": &dbtypes.AttributeValueMemberN{Value: "99"},
		}})
	}
	return err
}

// remove ends a stack: with the resources that are not kept, or with the first that cannot be
// deleted.
func (c *cloud) remove(kept func(resourceOf) bool) {
	stuck := func(kind, name, reason string) {
		c.script = append(c.script, event(kind, name, "DELETE_FAILED", reason), ofStack("DELETE_FAILED", ""))
	}
	table, archive := c.table(), c.resources()["AuditArchive"]
	switch {
	case table.Type != "" && !kept(table) && table.Protected():
		stuck(table.Type, "Table", "Resource cannot be deleted as it is currently protected against deletion")
		return
	case archive.Type != "" && !kept(archive) && c.objects > 0:
		stuck(archive.Type, "AuditArchive", "The bucket you tried to delete is not empty")
		return
	}
	if table.Type != "" && !kept(table) {
		c.db.DB = dynamofake.New()
	}
	c.script = append(c.script, ofStack("DELETE_COMPLETE", ""))
}

func (c *cloud) UpdateStack(_ context.Context, in *cloudformation.UpdateStackInput, _ ...func(*cloudformation.Options)) (*cloudformation.UpdateStackOutput, error) {
	if c.body == *in.TemplateBody && cmp.Equal(c.stack.Tags, in.Tags, cmp.Comparer(func(a, b types.Tag) bool { return *a.Key == *b.Key && *a.Value == *b.Value })) {
		return nil, &smithy.GenericAPIError{Code: "ValidationError", Message: "No updates are to be performed."}
	}
	c.body, c.stack.Tags = *in.TemplateBody, in.Tags
	c.begin("UPDATE")
	return &cloudformation.UpdateStackOutput{StackId: c.stack.StackId}, nil
}

func (c *cloud) DeleteStack(context.Context, *cloudformation.DeleteStackInput, ...func(*cloudformation.Options)) (*cloudformation.DeleteStackOutput, error) {
	fails := c.failed != nil
	c.begin("DELETE")
	if !fails {
		c.script = nil
		c.remove(func(r resourceOf) bool { return strings.HasPrefix(r.DeletionPolicy, "Retain") })
	}
	return &cloudformation.DeleteStackOutput{}, nil
}

func (c *cloud) DescribeStacks(_ context.Context, in *cloudformation.DescribeStacksInput, _ ...func(*cloudformation.Options)) (*cloudformation.DescribeStacksOutput, error) {
	foreign := types.Stack{StackName: aws.String("website"), StackStatus: "CREATE_COMPLETE"}
	switch {
	case in.StackName != nil && *in.StackName == "website":
		return &cloudformation.DescribeStacksOutput{Stacks: []types.Stack{foreign}}, nil
	case c.stack == nil, in.StackName != nil && *in.StackName == "limits" && c.stack.StackStatus == "DELETE_COMPLETE":
		return nil, &smithy.GenericAPIError{Code: "ValidationError", Message: "Stack with id limits does not exist"}
	}
	if len(c.script) > 0 {
		c.happen(c.script[0])
		c.script = c.script[1:]
	}
	out := &cloudformation.DescribeStacksOutput{Stacks: []types.Stack{*c.stack}}
	if in.StackName == nil {
		out.Stacks = append(out.Stacks, foreign)
	}
	return out, nil
}

func (c *cloud) DescribeStackEvents(context.Context, *cloudformation.DescribeStackEventsInput, ...func(*cloudformation.Options)) (*cloudformation.DescribeStackEventsOutput, error) {
	return &cloudformation.DescribeStackEventsOutput{StackEvents: slices.Clone(c.events)}, nil
}

func (c *cloud) GetTemplate(context.Context, *cloudformation.GetTemplateInput, ...func(*cloudformation.Options)) (*cloudformation.GetTemplateOutput, error) {
	return &cloudformation.GetTemplateOutput{TemplateBody: &c.body}, nil
}

// newManager returns a manager of an empty cloud, and its progress.
func newManager(t *testing.T) (*stack.Manager, *cloud, *[]string) {
	t.Helper()
	c, told := &cloud{db: &tables{dynamofake.New()}}, &[]string{}
	return stack.NewManager(stack.Config{API: c, Table: c.db, Version: "v1.2.3", Progress: func(e stack.Event) {
		*told = append(*told, e.Resource+" "+e.Status)
	}}), c, told
}
