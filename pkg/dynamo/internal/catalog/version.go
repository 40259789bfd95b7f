package catalog

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// SchemaVersion is the version of the table's layout that this program reads and writes: of
// its keys and indexes. It rises where no older program may touch the table at all.
const SchemaVersion = 1

// components are the parts of the layout whose items change on their own, and the newest
// version of each that this program reads. A program that does not know a component, or
// knows a smaller version, refuses the table.
func components() map[string]int {
	return map[string]int{
		"records": 1,              // entities, limits, audit events, namespaces
		"buckets": schema.FormNow, // the form of the items of buckets
	}
}

// ComponentVersion is the version of a part of the table's layout.
type ComponentVersion struct {
	Name  string
	Table int // greatest version that items of the table may have
	Known int // version that this program brings them to
}

// Older reports whether the table has an older version than the program.
func (v ComponentVersion) Older() bool { return v.Table < v.Known }

// String returns the version as a report has it.
func (v ComponentVersion) String() string {
	return fmt.Sprintf("%s: version %d, of %d that this program knows", v.Name, v.Table, v.Known)
}

// ComponentVersions returns the versions of a table that [CheckTable] allows, by name.
// Errors are those of CheckTable.
func ComponentVersions(ctx context.Context, client awsdb.Client, table string) ([]ComponentVersion, error) {
	v, err := readVersions(ctx, client, table)
	if err != nil {
		return nil, err
	}
	known := components()
	all := make([]ComponentVersion, 0, len(known))
	for _, name := range slices.Sorted(maps.Keys(known)) {
		all = append(all, ComponentVersion{Name: name, Table: v.Of(name), Known: known[name]})
	}
	return all, nil
}

// RaiseComponents records that items of a table may have every version that this program
// writes. Older programs refuse the table from then on. It may be repeated, and is called
// before the first such item is written. Errors are those of [CheckTable].
func RaiseComponents(ctx context.Context, client awsdb.Client, table string) error {
	loop := awsdb.Goroutines{}
	for try := 0; ; {
		v, err := readVersions(ctx, client, table)
		if err != nil {
			return err
		}
		to := components()
		maps.DeleteFunc(to, func(name string, n int) bool { return v.Components[name] == n })
		if len(to) == 0 {
			return nil
		}
		_, err = client.UpdateItem(ctx, schema.RaiseVersions(table, v, to))
		if err == nil {
			return nil
		}
		_, raced := awsdb.ConditionItem(err)
		if err = awsdb.Translate(err); !awsdb.Retry(ctx, loop, &try, raced || awsdb.MayPass(err)) { // twice is as good as once
			return fmt.Errorf("raising the versions of table %s: %w", table, err)
		}
	}
}

// checkVersion compares the table's versions with the program's, and puts the latter where
// there are none.
func checkVersion(ctx context.Context, client awsdb.Client, table string) error {
	_, err := readVersions(ctx, client, table)
	return err
}

// readVersions returns the versions of a table, which it puts where there are none. It
// refuses those that are newer than the program.
func readVersions(ctx context.Context, client awsdb.Client, table string) (schema.Versions, error) {
	out, err := client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, Key: schema.VersionKey().Attributes(), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return schema.Versions{}, tableError(table, "dynamodb:GetItem", err)
	}
	stored := out.Item
	if stored == nil {
		if stored, err = putVersions(ctx, client, table); err != nil {
			return schema.Versions{}, tableError(table, "dynamodb:PutItem", err)
		}
	}
	v, err := schema.ParseVersions(table, stored)
	if err == nil {
		err = refuseNewer(table, v)
	}
	return v, err
}

// refuseNewer refuses versions that this program does not know.
func refuseNewer(table string, v schema.Versions) error {
	const remedy = "use a newer version of the program"
	if v.Table > SchemaVersion {
		return fmt.Errorf("%w: table %s has schema version %d, and this program knows %d: %s", limiter.ErrInvalid, table, v.Table, SchemaVersion, remedy)
	}
	known := components()
	for _, name := range slices.Sorted(maps.Keys(v.Components)) {
		switch n := v.Components[name]; {
		case known[name] == 0:
			return fmt.Errorf("%w: table %s has %.64q of version %d, which this program does not know: %s", limiter.ErrInvalid, table, name, n, remedy)
		case n > known[name]:
			return fmt.Errorf("%w: table %s has %s of version %d, and this program knows %d: %s", limiter.ErrInvalid, table, name, n, known[name], remedy)
		}
	}
	return nil
}

// putVersions puts the program's versions unless there are some, and returns the record that
// is there then. A table without a record has no items: its namespaces begin in the newest
// form.
func putVersions(ctx context.Context, client awsdb.Client, table string) (map[string]types.AttributeValue, error) {
	record := schema.VersionItem(schema.Versions{Table: SchemaVersion, Components: components()})
	_, err := client.PutItem(ctx, schema.PutNew(table, record))
	if stored, exists := awsdb.ConditionItem(err); exists {
		return stored, nil
	}
	return record, err
}
