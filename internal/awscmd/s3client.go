package awscmd

import (
	"context"
	"fmt"
	"regexp"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

var bucketForm = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// isBucketName reports whether a bucket can have the name.
func isBucketName(name string) bool { return bucketForm.MatchString(name) }

// newS3Client returns a client with the region, the credentials and the endpoint of the environment. purpose is for
// the error, which wraps limiter.ErrInvalid.
func newS3Client(ctx context.Context, purpose string) (*s3.Client, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: AWS configuration: %w", limiter.ErrInvalid, err)
	}
	if cfg.Region == "" {
		return nil, fmt.Errorf("%w: no AWS region for %s: set AWS_REGION", limiter.ErrInvalid, purpose)
	}
	return s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.UsePathStyle = o.BaseEndpoint != nil // another server than AWS has no domain for each bucket
		o.DisableLogOutputChecksumValidationSkipped = true
	}), nil
}
