package stack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/smithy-go"
)

// Health is the state of a stack in one word.
type Health string

// The states of a stack.
const (
	Healthy  Health = "healthy"  // its last change is complete
	Changing Health = "changing" // a change is under way
	Failed   Health = "failed"   // its last change failed, and may have been rolled back
)

// Info is the state of a stack.
type Info struct {
	Name          string            `json:"name"`
	ID            string            `json:"id"`
	Status        string            `json:"status"` // such as CREATE_COMPLETE
	Reason        string            `json:"reason,omitempty"`
	Health        Health            `json:"health"`
	Created       time.Time         `json:"created"`
	Updated       time.Time         `json:"updated,omitzero"`          // zero = never
	Version       string            `json:"version"`                   // of the program that deployed it last
	SchemaVersion string            `json:"schema_version"`            // of the table
	Aggregator    string            `json:"aggregator_code,omitempty"` // of the function; "" = none is deployed
	Tags          map[string]string `json:"tags,omitempty"`            // those of the options
	Outputs       map[string]string `json:"outputs,omitempty"`
}

// newInfo reports false for a stack that this program did not make.
func newInfo(s *types.Stack) (Info, bool) {
	info := Info{
		Name: aws.ToString(s.StackName), ID: aws.ToString(s.StackId), Status: string(s.StackStatus), Reason: aws.ToString(s.StackStatusReason),
		Created: aws.ToTime(s.CreationTime), Updated: aws.ToTime(s.LastUpdatedTime),
		Health: healthOf(string(s.StackStatus)), Tags: map[string]string{}, Outputs: map[string]string{},
	}
	ours := false
	for _, tag := range s.Tags {
		switch key, value := aws.ToString(tag.Key), aws.ToString(tag.Value); key {
		case TagVersion:
			info.Version = value
		case TagSchemaVersion:
			info.SchemaVersion = value
		case TagAggregator:
			info.Aggregator = value
		case TagName:
			ours = value == info.Name
		default:
			info.Tags[key] = value
		}
	}
	for _, o := range s.Outputs {
		info.Outputs[aws.ToString(o.OutputKey)] = aws.ToString(o.OutputValue)
	}
	return info, ours
}

func healthOf(status string) Health {
	switch {
	case strings.HasSuffix(status, "_IN_PROGRESS"):
		return Changing
	case strings.Contains(status, "ROLLBACK"), strings.HasSuffix(status, "_FAILED"):
		return Failed
	default:
		return Healthy
	}
}

// List returns the stacks of the region that this program made, by name.
func (m *Manager) List(ctx context.Context) ([]Info, error) {
	var infos []Info
	pages := cloudformation.NewDescribeStacksPaginator(m.cfg.API, &cloudformation.DescribeStacksInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing stacks: %w", err)
		}
		for i := range page.Stacks {
			if info, ours := newInfo(&page.Stacks[i]); ours {
				infos = append(infos, info)
			}
		}
	}
	slices.SortFunc(infos, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
	return infos, nil
}

// Get returns a stack by its name or ID. It fails with [ErrNotFound] for one that does not
// exist, and with [ErrInvalid] for one that this program did not make.
func (m *Manager) Get(ctx context.Context, name string) (Info, error) {
	out, err := m.cfg.API.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &name})
	if err != nil {
		return Info{}, stackError(name, err)
	}
	if len(out.Stacks) == 0 {
		return Info{}, fmt.Errorf("stack %s: %w in this region and account", name, ErrNotFound)
	}
	info, ours := newInfo(&out.Stacks[0])
	if !ours {
		return Info{}, fmt.Errorf("%w: stack %s has no tag %s with its name: ratelimit did not make it", ErrInvalid, name, TagName)
	}
	return info, nil
}

// Options returns the options that a stack was deployed with.
func (m *Manager) Options(ctx context.Context, name string) (Options, error) {
	if _, err := m.Get(ctx, name); err != nil {
		return Options{}, err
	}
	out, err := m.cfg.API.GetTemplate(ctx, &cloudformation.GetTemplateInput{StackName: &name})
	if err != nil {
		return Options{}, stackError(name, err)
	}
	return optionsOf(aws.ToString(out.TemplateBody))
}

// stackError says of an error of CloudFormation which stack it is about.
func stackError(name string, err error) error {
	if _, exists := errors.AsType[*types.AlreadyExistsException](err); exists {
		return errExists(name)
	}
	api, ok := errors.AsType[smithy.APIError](err)
	if ok && api.ErrorCode() == "ValidationError" && strings.Contains(api.ErrorMessage(), "does not exist") {
		return fmt.Errorf("stack %s: %w in this region and account", name, ErrNotFound)
	}
	if ok && api.ErrorCode() == "UnknownError" {
		return fmt.Errorf("stack %s: the server gives no reason, which its own log may have: %w", name, err)
	}
	return fmt.Errorf("stack %s: %w", name, err)
}

func errExists(name string) error {
	return fmt.Errorf("stack %s: %w: use update to change it", name, ErrExists)
}

// unchanged reports whether an update found nothing to do.
func unchanged(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && api.ErrorCode() == "ValidationError" && strings.Contains(api.ErrorMessage(), "No updates are to be performed")
}
