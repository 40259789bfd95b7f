package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// indexSpec is an index of the table.
type indexSpec struct {
	name, pk, sk string
	include      []string // attributes beside the keys
}

// tableIndexes returns the indexes of the table. DynamoDB writes an index, at a
// write unit, whenever a projected attribute changes. So nothing that a decision
// writes is projected: the keys of an item, and the full names that they stand for, never
// change. GSI1 and GSI3 are read for those names, because keys have long names only in
// part; GSI2 and GSI4 lead to the items themselves.
func tableIndexes() []indexSpec {
	return []indexSpec{
		{schema.IndexChildren, schema.AttrGSI1PK, schema.AttrGSI1SK, []string{schema.AttrEntity}},
		{schema.IndexResources, schema.AttrGSI2PK, schema.AttrGSI2SK, nil},
		{schema.IndexLimits, schema.AttrGSI3PK, schema.AttrGSI3SK, []string{schema.AttrEntity, schema.AttrResource}},
		{schema.IndexNamespace, schema.AttrGSI4PK, schema.AttrGSI4SK, nil},
	}
}

// TableInput describes the table that [CreateTable] creates and [CheckTable] wants.
func TableInput(table string) *dynamodb.CreateTableInput {
	in := &dynamodb.CreateTableInput{
		TableName:   &table,
		BillingMode: types.BillingModePayPerRequest,
		KeySchema:   keySchema(schema.AttrPK, schema.AttrSK),
		StreamSpecification: &types.StreamSpecification{
			StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages,
		},
	}
	defineKeys(in, schema.AttrPK, schema.AttrSK)
	for _, index := range tableIndexes() {
		defineKeys(in, index.pk, index.sk)
		projection := &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}
		if index.include != nil {
			projection = &types.Projection{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: index.include}
		}
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: aws.String(index.name), KeySchema: keySchema(index.pk, index.sk), Projection: projection,
		})
	}
	return in
}

func defineKeys(in *dynamodb.CreateTableInput, names ...string) {
	for _, name := range names {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: &name, AttributeType: types.ScalarAttributeTypeS})
	}
}

func keySchema(pk, sk string) []types.KeySchemaElement {
	return []types.KeySchemaElement{
		{AttributeName: aws.String(pk), KeyType: types.KeyTypeHash},
		{AttributeName: aws.String(sk), KeyType: types.KeyTypeRange},
	}
}

// CreateTable creates the table, unless it is there, and checks it. It is for
// local endpoints: on AWS the table comes from the stack.
func CreateTable(ctx context.Context, client awsdb.Client, table string) error {
	_, err := client.CreateTable(ctx, TableInput(table))
	if _, exists := errors.AsType[*types.ResourceInUseException](err); err != nil && !exists {
		return fmt.Errorf("creating table %s: %w", table, tableError(table, "dynamodb:CreateTable", err))
	}
	waiter := dynamodb.NewTableExistsWaiter(client, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = 50*time.Millisecond, 2*time.Second
	})
	if err := waiter.Wait(ctx, &dynamodb.DescribeTableInput{TableName: &table}, 2*time.Minute); err != nil {
		return fmt.Errorf("waiting for table %s: %w", table, tableError(table, "dynamodb:DescribeTable", err))
	}
	_, err = client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName:               &table,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String(schema.AttrTTL), Enabled: aws.Bool(true)},
	})
	if err != nil && !strings.Contains(err.Error(), "already enabled") {
		return fmt.Errorf("time to live of table %s: %w", table, tableError(table, "dynamodb:UpdateTimeToLive", err))
	}
	return CheckTable(ctx, client, table)
}

// CheckTable reports why the table cannot be used: it is missing, not ready, of another
// shape, or of another schema version. In a table without a schema
// version it puts its own; it changes nothing else.
//
// Errors wrap limiter.ErrInvalid where only a change of table, permission or
// program helps, and limiter.ErrUnavailable where another try may.
func CheckTable(ctx context.Context, client awsdb.Client, table string) error {
	in := &dynamodb.DescribeTableInput{TableName: &table}
	out, err := client.DescribeTable(ctx, in)
	if err := awsdb.CheckReply(in, out, err); err != nil {
		return tableError(table, "dynamodb:DescribeTable", err)
	}
	if err := checkDescription(out.Table); err != nil {
		return fmt.Errorf("table %s: %w", table, err)
	}
	return checkVersion(ctx, awsdb.ItemsOf(client, table), table)
}

// checkDescription compares a table with TableInput.
func checkDescription(got *types.TableDescription) error {
	if err := checkStatus(string(got.TableStatus)); err != nil {
		return err
	}
	attributes := make(map[string]types.ScalarAttributeType, len(got.AttributeDefinitions))
	for _, a := range got.AttributeDefinitions {
		attributes[aws.ToString(a.AttributeName)] = a.AttributeType
	}
	if got, want := describeKeys(got.KeySchema, attributes), stringKeys(schema.AttrPK, schema.AttrSK); got != want {
		return fmt.Errorf("%w: its key is %s; it must be %s: use another table, keys cannot be changed", limiter.ErrInvalid, got, want)
	}
	for _, want := range tableIndexes() {
		i := slices.IndexFunc(got.GlobalSecondaryIndexes, func(g types.GlobalSecondaryIndexDescription) bool { return aws.ToString(g.IndexName) == want.name })
		if i < 0 {
			return fmt.Errorf("%w: it has no index %s with the key %s and projection %s", limiter.ErrInvalid, want.name, stringKeys(want.pk, want.sk), want.projection())
		}
		if err := checkIndex(&got.GlobalSecondaryIndexes[i], want, attributes); err != nil {
			return fmt.Errorf("index %s: %w", want.name, err)
		}
	}
	return checkOneRegion(got)
}

// legacyGlobal is the version of global tables that lists no replicas.
const legacyGlobal = "2017.11.29"

// checkOneRegion refuses a global table. Each of its regions applies conditional writes to
// its own copy, and of two that meet the last one wins: the tokens that the other took are forgotten.
// A list of the table's own region alone has no second copy.
func checkOneRegion(got *types.TableDescription) error {
	own, others := regionOf(aws.ToString(got.TableArn)), []string(nil)
	for _, r := range got.Replicas {
		if region := aws.ToString(r.RegionName); own == "" || region != own {
			others = append(others, region)
		}
	}
	for _, w := range got.GlobalTableWitnesses {
		others = append(others, aws.ToString(w.RegionName))
	}
	if len(others) > 0 {
		return fmt.Errorf("%w: it is a global table, with copies in %s: writes of two regions would overwrite each other; use a table of one region", limiter.ErrInvalid, strings.Join(others, ", "))
	}
	if aws.ToString(got.GlobalTableVersion) == legacyGlobal {
		return fmt.Errorf("%w: it is a global table of version %s: writes of two regions would overwrite each other; use a table of one region", limiter.ErrInvalid, legacyGlobal)
	}
	return nil
}

// regionOf returns the region of a table's ARN, "" if it has none.
func regionOf(arn string) string {
	parts := strings.Split(arn, ":") // arn:partition:dynamodb:region:account:table/name
	if len(parts) < 6 {
		return ""
	}
	return parts[3]
}

func checkIndex(got *types.GlobalSecondaryIndexDescription, want indexSpec, attributes map[string]types.ScalarAttributeType) error {
	if got, want := describeKeys(got.KeySchema, attributes), stringKeys(want.pk, want.sk); got != want {
		return fmt.Errorf("%w: its key is %s; it must be %s", limiter.ErrInvalid, got, want)
	}
	if got, want := describeProjection(got.Projection), want.projection(); got != want {
		return fmt.Errorf("%w: its projection is %s; it must be %s, so that no decision writes the index", limiter.ErrInvalid, got, want)
	}
	return checkStatus(string(got.IndexStatus))
}

// checkStatus is for tables and indexes, whose statuses have the same names.
func checkStatus(status string) error {
	switch status {
	case string(types.TableStatusActive), string(types.TableStatusUpdating):
		return nil
	case string(types.TableStatusCreating):
		return fmt.Errorf("%w: it is still being created; try again when it is ACTIVE", limiter.ErrUnavailable)
	default:
		return fmt.Errorf("%w: its status is %s; it must be ACTIVE", limiter.ErrInvalid, status)
	}
}

func (s indexSpec) projection() string {
	if s.include == nil {
		return string(types.ProjectionTypeKeysOnly)
	}
	return fmt.Sprintf("%s %v", types.ProjectionTypeInclude, s.include)
}

func describeProjection(p *types.Projection) string {
	if p == nil {
		return "missing"
	}
	if p.ProjectionType != types.ProjectionTypeInclude {
		return string(p.ProjectionType)
	}
	return fmt.Sprintf("%s %v", p.ProjectionType, slices.Sorted(slices.Values(p.NonKeyAttributes)))
}

func describeKeys(schema []types.KeySchemaElement, attributes map[string]types.ScalarAttributeType) string {
	parts := make([]string, len(schema))
	for i, k := range schema {
		name := aws.ToString(k.AttributeName)
		parts[i] = fmt.Sprintf("%s %s %s", k.KeyType, name, attributes[name])
	}
	return strings.Join(parts, ", ")
}

func stringKeys(pk, sk string) string { return fmt.Sprintf("HASH %s S, RANGE %s S", pk, sk) }
