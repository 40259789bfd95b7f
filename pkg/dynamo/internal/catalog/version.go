package catalog

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// SchemaVersion is the version of the table's layout that this program reads and writes: of
// its keys, indexes and items. It rises with each change that a program before the change would
// misread or overwrite.
const SchemaVersion = 1

// checkVersion refuses a table of another version than the program's. In a table without a version
// it puts the program's.
func checkVersion(ctx context.Context, client awsdb.Client, table string) error {
	out, err := client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, Key: schema.VersionKey().Attributes(), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return tableError(table, "dynamodb:GetItem", err)
	}
	stored := out.Item
	if stored == nil {
		if stored, err = putVersion(ctx, client, table); err != nil {
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
func putVersion(ctx context.Context, client awsdb.Client, table string) (map[string]types.AttributeValue, error) {
	record := schema.VersionItem(SchemaVersion)
	_, err := client.PutItem(ctx, schema.PutNew(table, record))
	if stored, exists := awsdb.ConditionItem(err); exists {
		return stored, nil
	}
	return record, err
}
