package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// callTimeout bounds each call, with its retries.
const callTimeout = 20 * time.Second

// maxPrefix bounds the beginning of the names of objects, in bytes. S3 allows names of 1,024.
const maxPrefix = 512

// ArchivePlace is where an archive is.
type ArchivePlace struct {
	Bucket string
	Prefix string // of the names of objects: "", or a text that ends with '/'
}

// ParseArchive reads a place such as s3://bucket/prefix. Its error wraps limiter.ErrInvalid.
func ParseArchive(url string) (ArchivePlace, error) {
	rest, ok := strings.CutPrefix(url, "s3://")
	bucket, prefix, _ := strings.Cut(rest, "/")
	prefix = strings.Trim(prefix, "/")
	if !ok || !isBucketName(bucket) || len(prefix) > maxPrefix || strings.ContainsAny(prefix, "?#\\") {
		return ArchivePlace{}, fmt.Errorf("%w: %.200q is no place of an archive; it must be like s3://bucket or s3://bucket/audit", limiter.ErrInvalid, url)
	}
	if prefix != "" {
		prefix += "/"
	}
	return ArchivePlace{bucket, prefix}, nil
}

// String returns the place in the form that ParseArchive reads.
func (p ArchivePlace) String() string { return "s3://" + p.Bucket + "/" + p.Prefix }

// Archive is an archive in S3. It is safe for concurrent use.
type Archive struct {
	client *s3.Client
	at     ArchivePlace
}

var _ aggregator.Archive = (*Archive)(nil)

// OpenArchive returns the archive at a place. It makes no call. Its errors wrap limiter.ErrInvalid.
func OpenArchive(ctx context.Context, at ArchivePlace) (*Archive, error) {
	client, err := newClient(ctx, "the archive")
	if err != nil {
		return nil, err
	}
	return &Archive{client, at}, nil
}

// Check asks for the bucket. It fails with limiter.ErrInvalid where there is none, and with
// limiter.ErrUnavailable where S3 does not say so. A caller that may only write gets no error.
func (a *Archive) Check(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, callTimeout)
	defer stop()
	_, err := a.client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &a.at.Bucket})
	if err == nil {
		return nil
	}
	response, answered := errors.AsType[*awshttp.ResponseError](err)
	switch {
	case answered && response.HTTPStatusCode() == http.StatusNotFound:
		return fmt.Errorf("%w: there is no bucket %s: create it, or name another with --archive", limiter.ErrInvalid, a.at.Bucket)
	case answered && response.HTTPStatusCode() == http.StatusForbidden:
		return nil // s3:PutObject needs no right to ask
	}
	return fmt.Errorf("bucket %s: %w: %w", a.at.Bucket, limiter.ErrUnavailable, err)
}

// Put implements aggregator.Archive.
func (a *Archive) Put(ctx context.Context, name string, object []byte) error {
	ctx, stop := context.WithTimeout(ctx, callTimeout)
	defer stop()
	name = a.at.Prefix + name
	_, err := a.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &a.at.Bucket, Key: &name, Body: bytes.NewReader(object), ContentType: aws.String("application/gzip"),
	})
	if err != nil {
		return fmt.Errorf("s3://%s/%s: %w: %w", a.at.Bucket, name, limiter.ErrUnavailable, err)
	}
	return nil
}
