package awscmd

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

// objectTimeout bounds each call, with its retries.
const objectTimeout = 20 * time.Second

// maxObjectPrefix bounds the beginning of the names of objects, in bytes. S3 allows names of 1,024.
const maxObjectPrefix = 512

// archivePlace is where an archive is.
type archivePlace struct {
	Bucket string
	Prefix string // of the names of objects: "", or a text that ends with '/'
}

// parseArchive reads a place such as s3://bucket/prefix. Its error wraps limiter.ErrInvalid.
func parseArchive(url string) (archivePlace, error) {
	rest, ok := strings.CutPrefix(url, "s3://")
	bucket, prefix, _ := strings.Cut(rest, "/")
	prefix = strings.Trim(prefix, "/")
	if !ok || !isBucketName(bucket) || len(prefix) > maxObjectPrefix || strings.ContainsAny(prefix, "?#\\") {
		return archivePlace{}, fmt.Errorf("%w: %.200q is no place of an archive; it must be like s3://bucket or s3://bucket/audit", limiter.ErrInvalid, url)
	}
	if prefix != "" {
		prefix += "/"
	}
	return archivePlace{bucket, prefix}, nil
}

// String returns the place in the form that ParseArchive reads.
func (p archivePlace) String() string { return "s3://" + p.Bucket + "/" + p.Prefix }

// s3Archive is an archive in S3. It is safe for concurrent use.
type s3Archive struct {
	client *s3.Client
	at     archivePlace
}

var _ aggregator.Archive = (*s3Archive)(nil)

// openArchive returns the archive at a place. It makes no call. Its errors wrap limiter.ErrInvalid.
func openArchive(ctx context.Context, at archivePlace) (*s3Archive, error) {
	client, err := newS3Client(ctx, "the archive")
	if err != nil {
		return nil, err
	}
	return &s3Archive{client, at}, nil
}

// Check asks for the bucket. It fails with limiter.ErrInvalid where there is none, and with
// limiter.ErrUnavailable where S3 does not say so. A caller that may only write gets no error.
func (a *s3Archive) Check(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, objectTimeout)
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
func (a *s3Archive) Put(ctx context.Context, name string, object []byte) error {
	ctx, stop := context.WithTimeout(ctx, objectTimeout)
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
