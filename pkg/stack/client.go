package stack

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
)

// API is the part of CloudFormation that a [Manager] uses; *cloudformation.Client is one.
type API interface {
	CreateStack(ctx context.Context, in *cloudformation.CreateStackInput, opts ...func(*cloudformation.Options)) (*cloudformation.CreateStackOutput, error)
	UpdateStack(ctx context.Context, in *cloudformation.UpdateStackInput, opts ...func(*cloudformation.Options)) (*cloudformation.UpdateStackOutput, error)
	DeleteStack(ctx context.Context, in *cloudformation.DeleteStackInput, opts ...func(*cloudformation.Options)) (*cloudformation.DeleteStackOutput, error)
	DescribeStacks(ctx context.Context, in *cloudformation.DescribeStacksInput, opts ...func(*cloudformation.Options)) (*cloudformation.DescribeStacksOutput, error)
	DescribeStackEvents(ctx context.Context, in *cloudformation.DescribeStackEventsInput, opts ...func(*cloudformation.Options)) (*cloudformation.DescribeStackEventsOutput, error)
	GetTemplate(ctx context.Context, in *cloudformation.GetTemplateInput, opts ...func(*cloudformation.Options)) (*cloudformation.GetTemplateOutput, error)
}

// NewClient returns a client of CloudFormation for a region, or for the environment's where
// region is "". Endpoint is a URL, or "" for the region's own. It contacts no server.
func NewClient(ctx context.Context, region, endpoint string) (*cloudformation.Client, error) {
	var options []func(*config.LoadOptions) error
	if region != "" {
		options = append(options, config.WithRegion(region))
	}
	loaded, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("%w: AWS configuration: %w", ErrInvalid, err)
	}
	if loaded.Region == "" {
		return nil, fmt.Errorf("%w: no AWS region: set --region, or AWS_REGION in the environment", ErrInvalid)
	}
	return cloudformation.NewFromConfig(loaded, func(o *cloudformation.Options) {
		if endpoint != "" {
			o.BaseEndpoint = &endpoint
		}
	}), nil
}

// Errors of a [Manager].
var (
	ErrNotFound = errors.New("no such stack")
	ErrExists   = errors.New("the stack exists")
	ErrFailed   = errors.New("the stack failed")
)

// FailedError says which resource of a stack failed, and why. It wraps [ErrFailed].
type FailedError struct {
	Stack    string // name
	Status   string // of the stack
	Resource string // logical name; "" = CloudFormation names none
	Kind     string // such as AWS::DynamoDB::Table
	Reason   string
}

// Error implements error.
func (e *FailedError) Error() string {
	if e.Resource == "" {
		return fmt.Sprintf("stack %s: %s: %v: %s", e.Stack, e.Status, ErrFailed, e.Reason)
	}
	return fmt.Sprintf("stack %s: %s: %v: %s (%s): %s", e.Stack, e.Status, ErrFailed, e.Resource, e.Kind, e.Reason)
}

// Unwrap returns [ErrFailed].
func (e *FailedError) Unwrap() error { return ErrFailed }
