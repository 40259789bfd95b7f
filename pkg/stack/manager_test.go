package stack_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/internal/dynamofake"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/stack"
)

// cloud acts as CloudFormation with one stack. Each look at a stack takes its next event.
type cloud struct {
	stack.API // what is not needed

	stack  *types.Stack
	body   string
	events []types.StackEvent // newest first
	script []types.StackEvent // still to come; the last one gives the stack its status
	failed []types.StackEvent // the script of the next change, in place of success
	calls  []string
}

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

func (c *cloud) CreateStack(_ context.Context, in *cloudformation.CreateStackInput, _ ...func(*cloudformation.Options)) (*cloudformation.CreateStackOutput, error) {
	if c.stack != nil {
		return nil, &types.AlreadyExistsException{}
	}
	c.stack = &types.Stack{StackName: in.StackName, StackId: aws.String("id-of-" + *in.StackName), Tags: in.Tags, CreationTime: aws.Time(time.Now())}
	c.body = *in.TemplateBody
	c.begin("CREATE")
	return &cloudformation.CreateStackOutput{StackId: c.stack.StackId}, nil
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
	c.begin("DELETE")
	return &cloudformation.DeleteStackOutput{}, nil
}

func (c *cloud) DescribeStacks(_ context.Context, in *cloudformation.DescribeStacksInput, _ ...func(*cloudformation.Options)) (*cloudformation.DescribeStacksOutput, error) {
	foreign := types.Stack{StackName: aws.String("website"), StackStatus: "CREATE_COMPLETE"}
	switch {
	case in.StackName != nil && *in.StackName == "website":
		return &cloudformation.DescribeStacksOutput{Stacks: []types.Stack{foreign}}, nil
	case c.stack == nil:
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

// newManager returns a manager of an empty cloud and a table, and what it tells.
func newManager(t *testing.T) (*stack.Manager, *cloud, *[]string) {
	t.Helper()
	c, told := &cloud{}, &[]string{}
	db := dynamofake.New()
	if err := dynamo.CreateTable(t.Context(), db, "limits"); err != nil {
		t.Fatal(err)
	}
	return stack.NewManager(stack.Config{API: c, Table: db, Version: "v1.2.3", Progress: func(e stack.Event) {
		*told = append(*told, e.Resource+" "+e.Status)
	}}), c, told
}

// A stack is created, its table is prepared, and namespaces get their policies.
func TestDeploy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c, told := newManager(t)
		info, err := m.Deploy(t.Context(), stack.Options{Name: "limits", Tags: map[string]string{"team": "edge"}, IAM: stack.IAM{Namespaces: []stack.Namespace{{Name: "web"}}}})
		if err != nil {
			t.Fatal(err)
		}
		if info.Health != stack.Healthy || info.Version != "v1.2.3" || info.SchemaVersion != "1" || info.Tags["team"] != "edge" || len(info.Tags) != 1 {
			t.Errorf("got %+v", info)
		}
		want := []string{
			"limits CREATE_IN_PROGRESS", "Table CREATE_COMPLETE", "limits CREATE_COMPLETE",
			"limits UPDATE_IN_PROGRESS", "Table UPDATE_COMPLETE", "limits UPDATE_COMPLETE",
		}
		if diff := cmp.Diff(want, *told); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		o, err := m.Options(t.Context(), "limits")
		if err != nil || len(o.IAM.Namespaces) != 1 || len(o.IAM.Namespaces[0].ID) != 11 || !strings.Contains(c.body, o.IAM.Namespaces[0].ID+"/BUCKET#*") {
			t.Errorf("options: %+v, %v", o, err)
		}
		if _, err := m.Deploy(t.Context(), stack.Options{Name: "limits"}); !errors.Is(err, stack.ErrExists) {
			t.Errorf("again: %v", err)
		}
	})
}

// A failure names the resource that failed first, not those that were cancelled for it.
func TestDeployFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c, _ := newManager(t)
		c.failed = []types.StackEvent{
			event("AWS::DynamoDB::Table", "Table", "CREATE_FAILED", "Resource creation cancelled"),
			event("AWS::IAM::ManagedPolicy", "FullPolicy", "CREATE_FAILED", "API: iam:CreatePolicy User: u is not authorized"),
			event("AWS::IAM::ManagedPolicy", "TakeOnlyPolicy", "CREATE_FAILED", "another one"),
			ofStack("DELETE_IN_PROGRESS", ""), ofStack("DELETE_COMPLETE", ""),
		}
		_, err := m.Deploy(t.Context(), stack.Options{Name: "limits"})
		failure, ok := errors.AsType[*stack.FailedError](err)
		if !ok || failure.Resource != "FullPolicy" || failure.Kind != "AWS::IAM::ManagedPolicy" || !strings.Contains(failure.Reason, "not authorized") || !errors.Is(err, stack.ErrFailed) {
			t.Errorf("got %v", err)
		}
	})
}

// An update keeps what is not named, and does nothing where nothing changes.
func TestUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c, _ := newManager(t)
		ctx := t.Context()
		if _, err := m.Deploy(ctx, stack.Options{Name: "limits", RecoveryDays: 7}); err != nil {
			t.Fatal(err)
		}
		set := func(change func(*stack.Options)) error {
			_, err := m.Update(ctx, "limits", func(o *stack.Options) error { change(o); return nil })
			return err
		}
		if err := set(func(*stack.Options) {}); err != nil || len(c.calls) != 1 {
			t.Errorf("no change: %v, %v", err, c.calls)
		}
		if err := set(func(o *stack.Options) { o.Alarms.Off = true }); err != nil || !strings.Contains(c.body, `"RecoveryPeriodInDays":7`) || strings.Contains(c.body, "Alarm\"") {
			t.Errorf("alarms off: %v, %s", err, c.body)
		}
		if err := set(func(o *stack.Options) { o.RecoveryDays = 99 }); !errors.Is(err, stack.ErrInvalid) {
			t.Errorf("wrong options: %v", err)
		}
		if err := set(func(o *stack.Options) { o.Aggregator.On = true }); !errors.Is(err, stack.ErrInvalid) || !strings.Contains(err.Error(), "aggregator.code") {
			t.Errorf("an aggregator without code: %v", err)
		}
		if err := set(func(o *stack.Options) { o.Name = "other" }); !errors.Is(err, stack.ErrInvalid) {
			t.Errorf("another name: %v", err)
		}
		c.failed = []types.StackEvent{event("AWS::DynamoDB::Table", "Table", "UPDATE_FAILED", "Subscriber limit exceeded"), ofStack("UPDATE_ROLLBACK_COMPLETE", "")}
		err := set(func(o *stack.Options) { o.RecoveryDays = 1 })
		if failure, ok := errors.AsType[*stack.FailedError](err); !ok || failure.Status != "UPDATE_ROLLBACK_COMPLETE" || failure.Reason != "Subscriber limit exceeded" {
			t.Errorf("a failure: %v", err)
		}
	})
}

// Options that a newer program wrote are not dropped.
func TestUpdateOfANewerStack(t *testing.T) {
	m, c, _ := newManager(t)
	c.stack = &types.Stack{StackName: aws.String("limits"), StackStatus: "CREATE_COMPLETE", Tags: []types.Tag{{Key: aws.String(stack.TagName), Value: aws.String("limits")}}}
	for body, want := range map[string]string{
		`{"Metadata": {"Ratelimit": {"Options": {"name": "limits", "warp": 9}}}}`: "warp",
		`{"Resources": {}}`: "carries no options",
		`Resources: {}`:     "cannot be read",
	} {
		c.body = body
		_, err := m.Update(t.Context(), "limits", func(*stack.Options) error { return nil })
		if !errors.Is(err, stack.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// Data goes only with a stack that is not protected.
func TestDelete(t *testing.T) {
	for _, test := range []struct {
		protected, keep, deleted bool
	}{{false, false, true}, {true, false, false}, {true, true, true}, {false, true, false}} {
		synctest.Test(t, func(t *testing.T) {
			m, c, _ := newManager(t)
			if _, err := m.Deploy(t.Context(), stack.Options{Name: "limits", DeletionProtection: test.protected}); err != nil {
				t.Fatal(err)
			}
			err := m.Delete(t.Context(), "limits", test.keep)
			if test.deleted != (err == nil) || !test.deleted && !errors.Is(err, stack.ErrInvalid) || test.deleted != slices.Contains(c.calls, "DELETE") {
				t.Errorf("%+v: %v, %v", test, err, c.calls)
			}
		})
	}
}

func TestDeleteFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c, _ := newManager(t)
		if _, err := m.Deploy(t.Context(), stack.Options{Name: "limits"}); err != nil {
			t.Fatal(err)
		}
		c.failed = []types.StackEvent{event("AWS::S3::Bucket", "AuditArchive", "DELETE_FAILED", "The bucket is not empty"), ofStack("DELETE_FAILED", "")}
		if err := m.Delete(t.Context(), "limits", false); err == nil || !strings.Contains(err.Error(), "AuditArchive (AWS::S3::Bucket): The bucket is not empty") {
			t.Errorf("got %v", err)
		}
	})
}

// Stacks that this program did not make are left alone.
func TestForeignStacks(t *testing.T) {
	m, _, _ := newManager(t)
	if _, err := m.Get(t.Context(), "limits"); !errors.Is(err, stack.ErrNotFound) {
		t.Errorf("none: %v", err)
	}
	if err := m.Delete(t.Context(), "website", false); !errors.Is(err, stack.ErrInvalid) {
		t.Errorf("another's: %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		m, c, _ := newManager(t)
		if _, err := m.Deploy(t.Context(), stack.Options{Name: "limits"}); err != nil {
			t.Fatal(err)
		}
		c.stack.StackStatus = "UPDATE_ROLLBACK_IN_PROGRESS"
		infos, err := m.List(t.Context())
		if err != nil || len(infos) != 1 || infos[0].Name != "limits" || infos[0].Health != stack.Changing {
			t.Errorf("list: %+v, %v", infos, err)
		}
	})
}

// A caller that goes away learns that the change goes on.
func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c, _ := newManager(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		c.failed = slices.Repeat([]types.StackEvent{event("AWS::DynamoDB::Table", "Table", "CREATE_IN_PROGRESS", "")}, 1000)
		time.AfterFunc(5*time.Second, func() { cancel(errors.New("interrupted")) })
		_, err := m.Deploy(ctx, stack.Options{Name: "limits"})
		if err == nil || !strings.HasPrefix(err.Error(), "interrupted: CloudFormation goes on changing stack limits") {
			t.Errorf("got %v", err)
		}
	})
}

func TestTableState(t *testing.T) {
	m, _, _ := newManager(t)
	if state, err := m.Table(t.Context(), "limits"); err != nil || state.Status != "ACTIVE" {
		t.Errorf("got %+v, %v", state, err)
	}
	if _, err := m.Table(t.Context(), "nowhere"); err == nil {
		t.Error("a table that is not there has a state")
	}
}
