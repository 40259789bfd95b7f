package migration

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Client is the part of DynamoDB that reads a table; *dynamodb.Client is one. It may retry
// or not: each call brings a retryer of its own.
type Client interface {
	GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	Scan(ctx context.Context, in *dynamodb.ScanInput, opts ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
}

// ErrTable says that a table is none of zae-limiter, or one of an unknown version.
var ErrTable = errors.New("not a table of a known version of zae-limiter")

// The schemas of package versions 0.9 to 0.17, as minor numbers: 0.8.0 to 0.10.0.
const (
	firstSchema = 8
	shardSchema = 9 // from here on a bucket has keys of its own
	lastSchema  = 10
)

// tries is how often a read is sent that DynamoDB throttles.
const tries = 10

// patience is how long a read may take with all its tries; those take 3 minutes at most.
const patience = 4 * time.Minute

// errPatience says that a table hangs.
var errPatience = fmt.Errorf("no answer within %v", patience)

// read makes one read.
func read[In, Out any](ctx context.Context, call func(context.Context, *In, ...func(*dynamodb.Options)) (*Out, error), in *In) (*Out, error) {
	ctx, stop := context.WithTimeoutCause(ctx, patience, errPatience)
	defer stop()
	out, err := call(ctx, in, retrying)
	if err != nil && errors.Is(context.Cause(ctx), errPatience) {
		err = fmt.Errorf("%w: %w", errPatience, err)
	}
	return out, err
}

// retrying has a read sent again: it changes nothing.
func retrying(o *dynamodb.Options) {
	o.Retryer = retry.AddWithMaxAttempts(retry.NewStandard(), tries)
}

// schemaOf reads the version of a table: the minor number of its schema.
func schemaOf(ctx context.Context, client Client, table string) (version string, minor int, err error) {
	for _, pk := range []string{registryNamespace + "/SYSTEM#", "SYSTEM#"} {
		out, err := read(ctx, client.GetItem, &dynamodb.GetItemInput{
			TableName: &table, ConsistentRead: aws.Bool(true),
			Key: map[string]types.AttributeValue{
				"PK": &types.AttributeValueMemberS{Value: pk}, "SK": &types.AttributeValueMemberS{Value: "#VERSION"},
			},
		})
		if err != nil {
			return "", 0, fmt.Errorf("reading table %s: %w", table, err)
		}
		if out.Item == nil {
			continue
		}
		if _, own := item(out.Item).number("schema_version"); own {
			return "", 0, fmt.Errorf("%w: table %s is one of ratelimit itself: there is nothing to migrate", ErrTable, table)
		}
		return checkSchema(table, item(out.Item).text("schema_version"))
	}
	return "", 0, fmt.Errorf("%w: table %s has no record of a version", ErrTable, table)
}

// checkSchema takes a version apart, and refuses one that is not known.
func checkSchema(table, version string) (string, int, error) {
	parts := strings.Split(version, ".")
	minor, err := strconv.Atoi(parts[min(1, len(parts)-1)])
	if len(parts) != 3 || strings.Trim(version, "0123456789.") != "" || parts[0] != "0" || err != nil || minor < firstSchema || minor > lastSchema {
		return "", 0, fmt.Errorf("%w: table %s has schema %.100q; schemas 0.%d.0 to 0.%d.0 can be read, those of package versions 0.9 to 0.17", ErrTable, table, version, firstSchema, lastSchema)
	}
	return version, minor, nil
}
