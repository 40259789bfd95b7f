package stack

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
)

// follower reports the events of one change of a stack.
type follower struct {
	m      *Manager
	id     string            // of the stack
	seen   map[string]bool   // ids of events
	failed *types.StackEvent // the first that says why
}

// follow returns a follower of the events from now on. The stack may not exist yet, with
// id "".
func (m *Manager) follow(ctx context.Context, id string) (*follower, error) {
	f := &follower{m: m, id: id, seen: map[string]bool{}}
	if id == "" {
		return f, nil
	}
	events, err := f.news(ctx)
	if err != nil {
		return nil, err
	}
	for i := range events {
		f.seen[aws.ToString(events[i].EventId)] = true
	}
	return f, nil
}

// news returns the events that were not seen, oldest first.
func (f *follower) news(ctx context.Context) ([]types.StackEvent, error) {
	var news []types.StackEvent
	pages := cloudformation.NewDescribeStackEventsPaginator(f.m.cfg.API, &cloudformation.DescribeStackEventsInput{StackName: &f.id})
	for pages.HasMorePages() { // newest first
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("events of stack %s: %w", f.id, err)
		}
		for i := range page.StackEvents {
			if f.seen[aws.ToString(page.StackEvents[i].EventId)] {
				slices.Reverse(news)
				return news, nil
			}
			news = append(news, page.StackEvents[i])
		}
	}
	slices.Reverse(news)
	return news, nil
}

// tell reports new events, and notes the first failure.
func (f *follower) tell(ctx context.Context) error {
	events, err := f.news(ctx)
	if err != nil {
		return err
	}
	for i := range events {
		e := &events[i]
		f.seen[aws.ToString(e.EventId)] = true
		reason := aws.ToString(e.ResourceStatusReason)
		if f.failed == nil && strings.HasSuffix(string(e.ResourceStatus), "_FAILED") && reason != "" && !strings.Contains(strings.ToLower(reason), "cancelled") {
			f.failed = e
		}
		if f.m.cfg.Progress != nil {
			f.m.cfg.Progress(Event{
				Time: aws.ToTime(e.Timestamp), Resource: aws.ToString(e.LogicalResourceId), Kind: aws.ToString(e.ResourceType),
				Status: string(e.ResourceStatus), Reason: reason,
			})
		}
	}
	return nil
}

// finish waits until the stack stops changing, and fails unless it has the wanted status.
func (f *follower) finish(ctx context.Context, name, want string) error {
	for {
		out, err := f.m.cfg.API.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &f.id})
		if err != nil {
			return f.interrupted(ctx, name, stackError(name, err))
		}
		if err := f.tell(ctx); err != nil {
			return f.interrupted(ctx, name, err)
		}
		if len(out.Stacks) == 0 {
			return fmt.Errorf("stack %s: %w", name, ErrNotFound)
		}
		stack := out.Stacks[0]
		if status := string(stack.StackStatus); healthOf(status) != Changing {
			if status == want {
				return nil
			}
			return f.failure(name, &stack)
		}
		if err := f.m.pause(ctx); err != nil {
			return f.interrupted(ctx, name, err)
		}
	}
}

// interrupted says that a change goes on without its follower.
func (f *follower) interrupted(ctx context.Context, name string, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("%w: CloudFormation goes on changing stack %s; its status shows how it ended", context.Cause(ctx), name)
}

// failure says which resource failed first.
func (f *follower) failure(name string, stack *types.Stack) error {
	e := &FailedError{Stack: name, Status: string(stack.StackStatus), Reason: aws.ToString(stack.StackStatusReason)}
	if f.failed != nil {
		e.Resource, e.Kind, e.Reason = aws.ToString(f.failed.LogicalResourceId), aws.ToString(f.failed.ResourceType), aws.ToString(f.failed.ResourceStatusReason)
	}
	return e
}
