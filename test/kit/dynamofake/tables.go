package dynamofake

import (
	"context"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// table finds a table.
func (db *DB) table(name *string) (*table, error) {
	if t := db.tables[aws.ToString(name)]; t != nil {
		return t, nil
	}
	return nil, noTable()
}

// CreateTable makes a table, which is active at once.
func (db *DB) CreateTable(ctx context.Context, in *dynamodb.CreateTableInput, _ ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error) {
	return do(ctx, db, Call{Op: "CreateTable", Table: aws.ToString(in.TableName), Input: in}, func() (request[dynamodb.CreateTableOutput], error) {
		t, err := newTable(in)
		if err != nil {
			return request[dynamodb.CreateTableOutput]{}, err
		}
		name := aws.ToString(in.TableName)
		return request[dynamodb.CreateTableOutput]{apply: func() (*dynamodb.CreateTableOutput, error) {
			if db.tables[name] != nil {
				return nil, &types.ResourceInUseException{Message: aws.String("Cannot create preexisting table")}
			}
			if db.tables == nil {
				db.tables = map[string]*table{}
			}
			db.tables[name] = t
			return &dynamodb.CreateTableOutput{TableDescription: t.describe()}, nil
		}}, nil
	})
}

// DescribeTable describes a table.
func (db *DB) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, _ ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	name := aws.ToString(in.TableName)
	return do(ctx, db, Call{Op: "DescribeTable", Table: name, Input: in}, func() (request[dynamodb.DescribeTableOutput], error) {
		return request[dynamodb.DescribeTableOutput]{apply: func() (*dynamodb.DescribeTableOutput, error) {
			t, err := db.table(&name)
			if err != nil {
				return nil, err
			}
			return &dynamodb.DescribeTableOutput{Table: t.describe()}, nil
		}}, nil
	})
}

// UpdateTimeToLive says which attribute holds the time when an item expires. Items
// expire when [DB.Expire] is called.
func (db *DB) UpdateTimeToLive(ctx context.Context, in *dynamodb.UpdateTimeToLiveInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error) {
	name := aws.ToString(in.TableName)
	return do(ctx, db, Call{Op: "UpdateTimeToLive", Table: name, Input: in}, func() (request[dynamodb.UpdateTimeToLiveOutput], error) {
		if in.TimeToLiveSpecification == nil {
			return request[dynamodb.UpdateTimeToLiveOutput]{}, invalid("TimeToLiveSpecification must not be null")
		}
		spec := *in.TimeToLiveSpecification
		return request[dynamodb.UpdateTimeToLiveOutput]{apply: func() (*dynamodb.UpdateTimeToLiveOutput, error) {
			t, err := db.table(&name)
			if err != nil {
				return nil, err
			}
			enable := aws.ToBool(spec.Enabled)
			switch {
			case enable && t.ttl != "":
				return nil, invalid("TimeToLive is already enabled")
			case !enable && t.ttl == "":
				return nil, invalid("TimeToLive is already disabled")
			case enable:
				t.ttl = aws.ToString(spec.AttributeName)
			default:
				t.ttl = ""
			}
			return &dynamodb.UpdateTimeToLiveOutput{TimeToLiveSpecification: &spec}, nil
		}}, nil
	})
}

// Expire deletes the items of a table whose time to live is before now, Unix
// seconds, and returns how many. Like DynamoDB it does so in its own time and
// consumes no capacity.
func (db *DB) Expire(tableName string, now int64) int {
	db.mu.Lock()
	defer db.mu.Unlock()
	t := db.tables[tableName]
	if t == nil || t.ttl == "" {
		return 0
	}
	n := 0
	for hash, partition := range t.partitions {
		for sort, it := range partition {
			v, ok := it[t.ttl].(*types.AttributeValueMemberN)
			if ok && compareNumbers(v.Value, strconv.FormatInt(now, 10)) < 0 {
				t.set(address{hash, sort}, nil)
				n++
			}
		}
	}
	return n
}
