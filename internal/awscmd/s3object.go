package awscmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// maxObjectBytes is the greatest size of an object: 16 MiB.
const maxObjectBytes = 16 << 20

// maxObjectKey is the longest key that S3 allows, in bytes.
const maxObjectKey = 1024

// objectPlace names an object.
type objectPlace struct{ Bucket, Key string }

// parseObject reads a place such as s3://bucket/key. Its error wraps limiter.ErrInvalid.
func parseObject(url string) (objectPlace, error) {
	rest, ok := strings.CutPrefix(url, "s3://")
	bucket, key, _ := strings.Cut(rest, "/")
	if !ok || !isBucketName(bucket) || key == "" || len(key) > maxObjectKey || strings.HasSuffix(key, "/") || strings.ContainsAny(key, "?#\\") {
		return objectPlace{}, fmt.Errorf("%w: %.200q is no object of S3; it must be like s3://bucket/ratelimit.yaml", limiter.ErrInvalid, url)
	}
	return objectPlace{bucket, key}, nil
}

// String returns the place in the form that ParseObject reads.
func (p objectPlace) String() string { return "s3://" + p.Bucket + "/" + p.Key }

// s3Object is an object. It is safe for concurrent use.
type s3Object struct {
	client *s3.Client
	at     objectPlace
}

// openObject returns the object at a place. It makes no call. Its errors wrap limiter.ErrInvalid.
func openObject(ctx context.Context, at objectPlace) (*s3Object, error) {
	client, err := newS3Client(ctx, at.String())
	if err != nil {
		return nil, err
	}
	return &s3Object{client, at}, nil
}

// Get returns the content and the ETag of the object; nil where the object still has the ETag seen. It fails with
// limiter.ErrInvalid where there is no such object, access is denied or it has more than [maxObjectBytes], and else
// with limiter.ErrUnavailable.
func (o *s3Object) Get(ctx context.Context, seen string) (content []byte, etag string, err error) {
	in := &s3.GetObjectInput{Bucket: &o.at.Bucket, Key: &o.at.Key}
	if seen != "" {
		in.IfNoneMatch = &seen
	}
	out, err := o.client.GetObject(ctx, in)
	if response, answered := errors.AsType[*awshttp.ResponseError](err); answered && seen != "" && response.HTTPStatusCode() == http.StatusNotModified {
		return nil, seen, nil
	}
	if err != nil {
		return nil, "", o.translate(err)
	}
	defer func() { _ = out.Body.Close() }()
	content, err = io.ReadAll(io.LimitReader(out.Body, maxObjectBytes+1))
	if err != nil {
		return nil, "", o.translate(err)
	}
	if len(content) > maxObjectBytes {
		return nil, "", fmt.Errorf("%s: %w: the object has more than %d MiB", o.at, limiter.ErrInvalid, maxObjectBytes>>20)
	}
	return content, aws.ToString(out.ETag), nil
}

// translate names the place and the reason. The answer of S3 is not repeated where its code says enough.
func (o *s3Object) translate(err error) error {
	if response, answered := errors.AsType[*awshttp.ResponseError](err); answered {
		switch response.HTTPStatusCode() {
		case http.StatusNotFound:
			return fmt.Errorf("%s: %w: there is no such object", o.at, limiter.ErrInvalid)
		case http.StatusForbidden:
			return fmt.Errorf("%s: %w: the role may not read the object, or there is none: it needs s3:GetObject, and kms:Decrypt for a key of KMS", o.at, limiter.ErrInvalid)
		}
	}
	return fmt.Errorf("%s: %w: %w", o.at, limiter.ErrUnavailable, err)
}
