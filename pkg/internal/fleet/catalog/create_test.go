package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

func TestCreateTable(t *testing.T) {
	client := dynamotest.Start(t).Client(t)
	table := dynamotest.TableName(t)
	for try := range 2 { // the second finds it there
		if err := CreateTable(t.Context(), client, table); err != nil {
			t.Fatalf("CreateTable, try %d: %v", try, err)
		}
	}
	out, err := client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &table})
	if err != nil {
		t.Fatalf("DescribeTable: %v", err)
	}
	if got := out.Table.BillingModeSummary.BillingMode; got != types.BillingModePayPerRequest {
		t.Errorf("billing mode %s", got)
	}
	if s := out.Table.StreamSpecification; s == nil || !aws.ToBool(s.StreamEnabled) || s.StreamViewType != types.StreamViewTypeNewAndOldImages {
		t.Errorf("stream %+v", s)
	}
	ttl, err := client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &table})
	if err != nil || ttl.TimeToLiveDescription.TimeToLiveStatus != types.TimeToLiveStatusEnabled || aws.ToString(ttl.TimeToLiveDescription.AttributeName) != "ttl" {
		t.Errorf("time to live %+v, error %v", ttl, err)
	}
	version, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &table, Key: schema.VersionKey().Attributes()})
	if err != nil || version.Item[schema.AttrSchemaVersion] == nil {
		t.Errorf("version record %v, error %v", version, err)
	}
}

// TestDecisionsWriteNoIndex: a change of attributes that decisions change costs one
// write unit, though the item is in three indexes.
func TestDecisionsWriteNoIndex(t *testing.T) {
	client := dynamotest.Start(t).Client(t)
	table := dynamotest.TableName(t)
	if err := CreateTable(t.Context(), client, table); err != nil {
		t.Fatalf("CreateTable: %v", err)
	}
	k := schema.BucketKey(testNS, limiter.BucketKey{Entity: "org/acme", Resource: "gpt-4"}, 0)
	item := schema.NewRecord(k, schema.BucketIndexes(testNS, limiter.BucketKey{Entity: "org/acme", Resource: "gpt-4"}, 0), limiter.EntityLimitsRef("org/acme", "gpt-4"))
	item["b_rpm_v"] = avN("1000")
	created, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: item, ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes})
	if err != nil {
		t.Fatalf("PutItem: %v", err)
	}
	if got := *created.ConsumedCapacity.CapacityUnits; got != 4 {
		t.Errorf("creation cost %v units, want 4: the item is not in three indexes", got)
	}
	out, err := client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: &table, Key: k.Attributes(), ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes,
		UpdateExpression:          aws.String("ADD #v :take SET #lt = :now, #ttl = :now"),
		ExpressionAttributeNames:  map[string]string{"#v": "b_rpm_v", "#lt": schema.AttrLastTake, "#ttl": schema.AttrTTL},
		ExpressionAttributeValues: attributes{":take": avN("1000"), ":now": avN("1700000000")},
	})
	if err != nil {
		t.Fatalf("UpdateItem: %v", err)
	}
	if got := *out.ConsumedCapacity.CapacityUnits; got != 1 || len(out.ConsumedCapacity.GlobalSecondaryIndexes) != 0 {
		t.Errorf("a decision's write cost %v units, of indexes %v; want 1 and none", got, out.ConsumedCapacity.GlobalSecondaryIndexes)
	}
}

// TestCheckTableRefuses: tables of another shape, on DynamoDB Local, each with an
// error that names table and fault. Nothing is written to them.
func TestCheckTableRefuses(t *testing.T) {
	client := dynamotest.Start(t).Client(t)
	for _, test := range []struct {
		name   string
		change func(*dynamodb.CreateTableInput)
		want   []string
	}{
		{"keys", func(in *dynamodb.CreateTableInput) {
			in.KeySchema = keySchema("id", schema.AttrSK)
			in.AttributeDefinitions[0].AttributeName = aws.String("id")
		}, []string{"its key is HASH id S, RANGE SK S", "must be HASH PK S, RANGE SK S"}},
		{"no sort key", func(in *dynamodb.CreateTableInput) {
			in.KeySchema = in.KeySchema[:1]
			in.AttributeDefinitions = append(in.AttributeDefinitions[:1], in.AttributeDefinitions[2:]...)
		}, []string{"its key is HASH PK S;", "must be HASH PK S, RANGE SK S"}},
		{"key type", func(in *dynamodb.CreateTableInput) {
			in.AttributeDefinitions[0].AttributeType = types.ScalarAttributeTypeB
		}, []string{"HASH PK B", "must be HASH PK S"}},
		{"without an index", func(in *dynamodb.CreateTableInput) {
			in.GlobalSecondaryIndexes = in.GlobalSecondaryIndexes[:3]
			in.AttributeDefinitions = in.AttributeDefinitions[:8]
		}, []string{"it has no index GSI4", "HASH GSI4PK S, RANGE GSI4SK S", "KEYS_ONLY"}},
		{"index keys", func(in *dynamodb.CreateTableInput) {
			in.GlobalSecondaryIndexes[0].KeySchema = keySchema(schema.AttrGSI1SK, schema.AttrGSI1PK)
		}, []string{"index GSI1", "HASH GSI1SK S, RANGE GSI1PK S", "must be HASH GSI1PK S"}},
		{"projects all", func(in *dynamodb.CreateTableInput) {
			in.GlobalSecondaryIndexes[1].Projection = &types.Projection{ProjectionType: types.ProjectionTypeAll}
		}, []string{"index GSI2", "projection is ALL", "must be KEYS_ONLY"}},
		{"projects too little", func(in *dynamodb.CreateTableInput) {
			in.GlobalSecondaryIndexes[2].Projection = &types.Projection{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: []string{"entity_id"}}
		}, []string{"index GSI3", "INCLUDE [entity_id]", "must be INCLUDE [entity_id resource]"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			table := dynamotest.TableName(t)
			in := TableInput(table)
			test.change(in)
			if _, err := client.CreateTable(t.Context(), in); err != nil {
				t.Fatalf("CreateTable: %v", err)
			}
			wantTableError(t, CheckTable(t.Context(), client, table), limiter.ErrInvalid, append(test.want, table)...)
			if out, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &table}); err != nil || out.Count != 0 {
				t.Errorf("%d items were written to a foreign table, error %v", out.Count, err)
			}
		})
	}
}

// describedAs is a table that DynamoDB describes with more than it has here.
type describedAs struct {
	*dynamofake.DB

	change func(*types.TableDescription)
}

func (d describedAs) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, opts ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	out, err := d.DB.DescribeTable(ctx, in, opts...)
	if err == nil {
		table := *out.Table
		d.change(&table)
		out = &dynamodb.DescribeTableOutput{Table: &table}
	}
	return out, err
}

// A global table is refused: of two regions' writes the last one wins. One whose list of
// replicas has its own region alone is a table of one region.
func TestCheckTableRefusesGlobalTables(t *testing.T) {
	const arn = "arn:aws:dynamodb:eu-central-1:123456789012:table/t"
	in := func(regions ...string) (all []types.ReplicaDescription) {
		for _, region := range regions {
			all = append(all, types.ReplicaDescription{RegionName: aws.String(region)})
		}
		return all
	}
	for _, test := range []struct {
		name string
		as   types.TableDescription
		want []string // of the error; nil = the table is good
	}{
		{"one region", types.TableDescription{TableArn: aws.String(arn)}, nil},
		{"its own region in the list", types.TableDescription{TableArn: aws.String(arn), Replicas: in("eu-central-1"), GlobalTableVersion: aws.String("2019.11.21")}, nil},
		{"another region", types.TableDescription{TableArn: aws.String(arn), Replicas: in("us-east-1")}, []string{"global table", "us-east-1", "a table of one region"}},
		{"its own region and another", types.TableDescription{TableArn: aws.String(arn), Replicas: in("eu-central-1", "us-east-1")}, []string{"copies in us-east-1:"}},
		{"without an ARN", types.TableDescription{TableArn: aws.String(""), Replicas: in("us-east-1")}, []string{"us-east-1"}},
		{"a witness", types.TableDescription{
			TableArn: aws.String(arn), GlobalTableWitnesses: []types.GlobalTableWitnessDescription{{RegionName: aws.String("us-west-2")}},
		}, []string{"us-west-2"}},
		{"an old global table", types.TableDescription{TableArn: aws.String(arn), GlobalTableVersion: aws.String("2017.11.29")}, []string{"2017.11.29"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			client := describedAs{newTable(t), func(d *types.TableDescription) {
				d.TableArn, d.Replicas, d.GlobalTableVersion, d.GlobalTableWitnesses = test.as.TableArn, test.as.Replicas, test.as.GlobalTableVersion, test.as.GlobalTableWitnesses
			}}
			err := CheckTable(t.Context(), client, testTable)
			if test.want == nil && err != nil {
				t.Errorf("a table of one region: %v", err)
			}
			if test.want != nil {
				wantTableError(t, err, limiter.ErrInvalid, append(test.want, testTable)...)
			}
		})
	}
}

const testTable = "limits"

// newTable returns a DynamoDB with a table.
func newTable(t *testing.T) *dynamofake.DB {
	t.Helper()
	db := dynamofake.New()
	if _, err := db.CreateTable(t.Context(), TableInput(testTable)); err != nil {
		t.Fatal(err)
	}
	return db
}

func wantTableError(t *testing.T, err, kind error, mentions ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("error = %v, want %q", err, kind)
		return
	}
	for _, m := range mentions {
		if !strings.Contains(err.Error(), m) {
			t.Errorf("error %q does not say %q", err, m)
		}
	}
}

// TestCheckTableOfAVersion: a table without a version gets that of the program. Another version
// and a broken record are refused.
func TestCheckTableOfAVersion(t *testing.T) {
	client := dynamotest.Start(t).Client(t)
	table := dynamotest.TableName(t)
	if _, err := client.CreateTable(t.Context(), TableInput(table)); err != nil {
		t.Fatalf("CreateTable: %v", err)
	}
	key := schema.VersionKey().Attributes()
	for _, test := range []struct {
		stored attributes // nil = no record
		want   error
		says   string
	}{
		{nil, nil, ""},
		{attributes{"schema_version": avN("1")}, nil, ""},
		{attributes{"schema_version": avN("2")}, limiter.ErrInvalid, "schema version 2, and this program knows 1: use a newer version"},
		{attributes{"schema_version": avN("0")}, limiter.ErrInvalid, "schema_version is 0"},
		{attributes{"schema_version": avN("-3")}, limiter.ErrInvalid, "schema_version is -3"},
		{attributes{"schema_version": avS("1")}, limiter.ErrInvalid, "schema_version is a string"},
	} {
		record := schema.VersionItem(SchemaVersion)
		if test.stored != nil {
			record = maps.Clone(test.stored)
			maps.Copy(record, key)
			if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: record}); err != nil {
				t.Fatalf("PutItem: %v", err)
			}
		}
		err := CheckTable(t.Context(), client, table)
		if test.want != nil {
			wantTableError(t, err, test.want, test.says, table)
		} else if err != nil {
			t.Errorf("version %#v: %v", test.stored, err)
		}
		out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &table, Key: key})
		if err != nil {
			t.Fatalf("GetItem: %v", err)
		}
		if diff := cmp.Diff(fmt.Sprint(attributeText(record)), fmt.Sprint(attributeText(out.Item))); diff != "" {
			t.Errorf("version %#v: the record (-want +got):\n%s", test.stored, diff)
		}
	}
}

// attributeText writes an item so that two can be compared.
func attributeText(item attributes) map[string]string {
	text := make(map[string]string, len(item))
	for name, v := range item {
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			text[name] = "S " + v.Value
		case *types.AttributeValueMemberN:
			text[name] = "N " + v.Value
		default:
			text[name] = fmt.Sprintf("%#v", v)
		}
	}
	return text
}

// describing is a client whose DescribeTable has the answer of a test.
type describing struct {
	awsdb.Client
	table *types.TableDescription
	err   error
}

func (d describing) DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	return &dynamodb.DescribeTableOutput{Table: d.table}, d.err
}

// TestCheckTableOfAStatus: statuses that DynamoDB Local never has.
func TestCheckTableOfAStatus(t *testing.T) {
	db := dynamofake.New()
	if err := CreateTable(t.Context(), db, "limits"); err != nil {
		t.Fatalf("CreateTable: %v", err)
	}
	out, err := db.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("limits")})
	if err != nil {
		t.Fatalf("DescribeTable: %v", err)
	}
	for status, want := range map[types.TableStatus]error{
		types.TableStatusActive: nil, types.TableStatusUpdating: nil, types.TableStatusCreating: limiter.ErrUnavailable,
		types.TableStatusDeleting: limiter.ErrInvalid, types.TableStatusArchived: limiter.ErrInvalid, types.TableStatusInaccessibleEncryptionCredentials: limiter.ErrInvalid,
	} {
		got := *out.Table
		got.TableStatus = status
		if err := CheckTable(t.Context(), describing{db, &got, nil}, "limits"); !errors.Is(err, want) || want != nil && !strings.Contains(err.Error(), "ACTIVE") {
			t.Errorf("status %s: error = %v, want %v", status, err, want)
		}
	}
	for status, want := range map[types.IndexStatus]error{
		types.IndexStatusUpdating: nil, types.IndexStatusCreating: limiter.ErrUnavailable, types.IndexStatusDeleting: limiter.ErrInvalid,
	} {
		got := *out.Table
		got.GlobalSecondaryIndexes = append([]types.GlobalSecondaryIndexDescription(nil), got.GlobalSecondaryIndexes...)
		got.GlobalSecondaryIndexes[1].IndexStatus = status
		if err := CheckTable(t.Context(), describing{db, &got, nil}, "limits"); !errors.Is(err, want) || want != nil && !strings.Contains(err.Error(), "index GSI2") {
			t.Errorf("index status %s: error = %v, want %v", status, err, want)
		}
	}
}

func TestCheckTableThatCannotBeAsked(t *testing.T) {
	db := dynamofake.New()
	wantTableError(t, CheckTable(t.Context(), db, "limits"), limiter.ErrInvalid, "table limits does not exist", "create_table")

	refused := &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "User is not authorized"}
	err := CheckTable(t.Context(), describing{db, nil, refused}, "limits")
	wantTableError(t, err, awsdb.ErrDenied, "table limits", "dynamodb:DescribeTable")
	wantTableError(t, err, limiter.ErrInvalid)

	if err := CreateTable(t.Context(), db, "limits"); err != nil {
		t.Fatalf("CreateTable: %v", err)
	}
	db.SetPlan(dynamofake.Script(dynamofake.Step{Op: "GetItem", Fault: dynamofake.Fault{Kind: dynamofake.Fail, Err: refused}}))
	wantTableError(t, CheckTable(t.Context(), db, "limits"), awsdb.ErrDenied, "table limits", "dynamodb:GetItem")

	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("Listen: %v", err)
	}
	endpoint := "http://" + listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	nobody, err := awsdb.NewClient(t.Context(), awsdb.ClientConfig{Endpoint: endpoint})
	if err != nil {
		t.Fatalf("NewClient: %v", err)
	}
	wantTableError(t, CheckTable(t.Context(), nobody, "limits"), limiter.ErrUnavailable, "table limits", "cannot be reached", "connection refused")
	wantTableError(t, CreateTable(t.Context(), nobody, "limits"), limiter.ErrUnavailable, "table limits", "cannot be reached")
}

// A table that the reply does not describe cannot be used yet.
func TestTableWithoutADescription(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Amzn-Requestid", "1")
		_, _ = io.WriteString(w, "{}") // the client may have gone
	}))
	defer server.Close()
	client, err := awsdb.NewClient(t.Context(), awsdb.ClientConfig{Endpoint: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckTable(t.Context(), client, "t"); !errors.Is(err, limiter.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
}
