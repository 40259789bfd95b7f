package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// SchemaVersion is the version of the table's layout that this program reads and writes: of
// its keys, indexes and items. It rises with each change that a program before the change would
// misread or overwrite.
const SchemaVersion = 1

// checkVersion refuses a table of another version than the program's. In a table without a version
// it puts the program's.
func checkVersion(ctx context.Context, items awsdb.Items, table string) error {
	out, err := items.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, Key: schema.VersionKey().Attributes(), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return tableError(table, "dynamodb:GetItem", err)
	}
	stored := out.Item
	if stored == nil {
		if stored, err = putVersion(ctx, items); err != nil {
			return tableError(table, "dynamodb:PutItem", err)
		}
	}
	version, err := schema.ParseVersion(table, stored)
	if err == nil && version != SchemaVersion {
		err = fmt.Errorf("%w: table %s has schema version %d, and this program knows %d: use a newer version of the program", limiter.ErrInvalid, table, version, SchemaVersion)
	}
	return err
}

// putVersion puts the program's version unless there is one, and returns the record that is there
// then.
func putVersion(ctx context.Context, items awsdb.Items) (map[string]types.AttributeValue, error) {
	record := schema.VersionItem(SchemaVersion)
	_, err := items.Write(ctx, schema.PutNew(record))
	if stored, exists := awsdb.ConditionItem(err); exists {
		return stored, nil
	}
	return record, err
}

// tableError adds the remedy to an error that is about the whole table.
func tableError(table, permission string, err error) error {
	err = awsdb.TranslateRead(err)
	if _, missing := errors.AsType[*types.ResourceNotFoundException](err); missing {
		return fmt.Errorf("table %s does not exist in this region and account: create it by ratelimit stack deploy, or for a local endpoint set store.dynamodb.create_table: %w: %v", table, limiter.ErrInvalid, err) //nolint:errorlint // waiting does not make one
	}
	if errors.Is(err, awsdb.ErrDenied) {
		return fmt.Errorf("table %s: the caller needs the permission %s: %w", table, permission, err)
	}
	if awsdb.IsRefused(err) {
		return fmt.Errorf("table %s: DynamoDB refuses all calls, or something on the way does; check the credentials, the key of KMS and the network: %w", table, err)
	}
	if errors.Is(err, limiter.ErrUnavailable) {
		return fmt.Errorf("table %s: DynamoDB cannot be reached; check store.dynamodb.endpoint, region and network: %w", table, err)
	}
	return fmt.Errorf("table %s: %w", table, err)
}
