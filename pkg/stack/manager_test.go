package stack_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/stack"
)

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

// An update keeps options that are not named, and does nothing where nothing changes.
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
			left, err := m.Delete(t.Context(), "limits", test.keep)
			if test.deleted != (err == nil) || !test.deleted && !errors.Is(err, stack.ErrInvalid) || test.deleted != slices.Contains(c.calls, "DELETE") {
				t.Errorf("%+v: %v, %v", test, err, c.calls)
			}
			if _, err := m.Table(t.Context(), "limits"); (err == nil) == (test.deleted && !test.protected) {
				t.Errorf("%+v: the table: %v", test, err)
			}
			if test.deleted && test.protected != slices.Contains(left, "table limits") {
				t.Errorf("%+v: left is %q", test, left)
			}
		})
	}
}

// The archive stays with the events that are in it: CloudFormation could delete no bucket with
// objects.
func TestDeleteLeavesTheArchive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c, _ := newManager(t)
		o := stack.Options{Name: "limits", Aggregator: stack.Aggregator{On: true, Code: stack.Code{Bucket: "code", Key: "a.zip"}}}
		if _, err := m.Deploy(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if info, err := m.Get(t.Context(), "limits"); err != nil || info.Aggregator != "s3://code/a.zip" || len(info.Tags) != 0 {
			t.Errorf("got %+v, %v", info, err)
		}
		c.objects = 7
		left, err := m.Delete(t.Context(), "limits", false)
		if err != nil || !cmp.Equal(left, []string{"bucket bucket-of-limits"}) {
			t.Errorf("left is %q, %v", left, err)
		}
	})
}

func TestDeleteFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c, _ := newManager(t)
		if _, err := m.Deploy(t.Context(), stack.Options{Name: "limits"}); err != nil {
			t.Fatal(err)
		}
		c.failed = []types.StackEvent{event("AWS::IAM::ManagedPolicy", "FullPolicy", "DELETE_FAILED", "Cannot delete a policy attached to entities"), ofStack("DELETE_FAILED", "")}
		if _, err := m.Delete(t.Context(), "limits", false); err == nil || !strings.Contains(err.Error(), "FullPolicy (AWS::IAM::ManagedPolicy): Cannot delete a policy attached") {
			t.Errorf("got %v", err)
		}
	})
}

// A deployment that fails after the table leaves no table, also with deletion protection, and the
// next one succeeds.
func TestDeployFailsWithProtection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c, _ := newManager(t)
		ctx, o := t.Context(), stack.Options{Name: "limits", DeletionProtection: true}
		c.failed = []types.StackEvent{
			event("AWS::DynamoDB::Table", "Table", "CREATE_COMPLETE", ""),
			event("AWS::IAM::ManagedPolicy", "FullPolicy", "CREATE_FAILED", "not authorized"), ofStack("ROLLBACK_IN_PROGRESS", ""),
		}
		if _, err := m.Deploy(ctx, o); !errors.Is(err, stack.ErrFailed) || !strings.Contains(err.Error(), "FullPolicy") {
			t.Errorf("got %v", err)
		}
		if _, err := m.Table(ctx, "limits"); err == nil {
			t.Error("the table is left")
		}
		if _, err := m.Deploy(ctx, o); err != nil {
			t.Fatal(err)
		}
		if !c.table().Protected() || !cmp.Equal(c.calls, []string{"CREATE", "CREATE", "UPDATE"}) {
			t.Errorf("protected: %v, calls %v", c.table().Protected(), c.calls)
		}
		if o, err := m.Options(ctx, "limits"); err != nil || !o.DeletionProtection {
			t.Errorf("options: %+v, %v", o, err)
		}
	})
}

// A table that cannot be prepared is protected nevertheless.
func TestProtectionOfATableOfANewerProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c, _ := newManager(t)
		c.spoil = true
		if _, err := m.Deploy(t.Context(), stack.Options{Name: "limits", DeletionProtection: true}); err == nil || !strings.Contains(err.Error(), "could not be prepared") {
			t.Errorf("got %v", err)
		}
		if !c.table().Protected() {
			t.Error("the table is not protected")
		}
	})
}

// An update that would take the table out of the stack, and so delete it, is refused.
func TestUpdateKeepsTheTableInTheStack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c, _ := newManager(t)
		if _, err := m.Deploy(t.Context(), stack.Options{Name: "limits"}); err != nil {
			t.Fatal(err)
		}
		_, err := m.Update(t.Context(), "limits", func(o *stack.Options) error { o.ExistingTable = true; return nil })
		if !errors.Is(err, stack.ErrInvalid) || len(c.calls) != 1 {
			t.Errorf("got %v, calls %v", err, c.calls)
		}
	})
}

// A table of no stack is neither taken over nor deleted, unless the options say that it exists.
func TestExistingTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c, _ := newManager(t)
		ctx := t.Context()
		existing := stack.Options{Name: "limits", ExistingTable: true, Aggregator: stack.Aggregator{On: true, Code: stack.Code{Bucket: "code", Key: "a.zip"}}}
		if _, err := m.Deploy(ctx, existing); !errors.Is(err, stack.ErrInvalid) || !strings.Contains(err.Error(), "does not exist") {
			t.Errorf("no table: %v", err)
		}
		if err := dynamo.CreateTable(ctx, c.db, "limits"); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Deploy(ctx, stack.Options{Name: "limits"}); !errors.Is(err, stack.ErrInvalid) || !strings.Contains(err.Error(), "is of no stack") || len(c.calls) > 0 {
			t.Errorf("a table of no stack: %v, %v", err, c.calls)
		}
		if _, err := m.Deploy(ctx, existing); err != nil {
			t.Fatal(err)
		}
		o, err := m.Options(ctx, "limits")
		if err != nil || !strings.Contains(o.StreamARN, "table/limits/stream/") || c.table().Type != "" {
			t.Errorf("options %+v, %v; the table %+v", o, err, c.table())
		}
		if _, err := m.Update(ctx, "limits", func(o *stack.Options) error { o.ExistingTable, o.StreamARN = false, ""; return nil }); !errors.Is(err, stack.ErrInvalid) || !strings.Contains(err.Error(), "at deployment only") {
			t.Errorf("an update to a table of the stack: %v", err)
		}
		left, err := m.Delete(ctx, "limits", false)
		if _, failed := m.Table(ctx, "limits"); err != nil || failed != nil || left[0] != "table limits" {
			t.Errorf("left is %q, %v; %v", left, err, failed)
		}
	})
}

// Stacks that this program did not make are left alone.
func TestForeignStacks(t *testing.T) {
	m, _, _ := newManager(t)
	if _, err := m.Get(t.Context(), "limits"); !errors.Is(err, stack.ErrNotFound) {
		t.Errorf("none: %v", err)
	}
	if _, err := m.Delete(t.Context(), "website", false); !errors.Is(err, stack.ErrInvalid) {
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
	m, c, _ := newManager(t)
	if err := dynamo.CreateTable(t.Context(), c.db, "limits"); err != nil {
		t.Fatal(err)
	}
	if state, err := m.Table(t.Context(), "limits"); err != nil || state.Status != "ACTIVE" {
		t.Errorf("got %+v, %v", state, err)
	}
	if _, err := m.Table(t.Context(), "nowhere"); err == nil {
		t.Error("a table that is not there has a state")
	}
}
