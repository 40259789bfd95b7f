package schema

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// VersionItem returns the version record: the version of the table's layout.
func VersionItem(version uint64) map[string]types.AttributeValue {
	item := VersionKey().Attributes()
	item[AttrSchemaVersion] = NumberAttribute(version)
	return item
}

// ParseVersion reads the version record.
func ParseVersion(table string, item map[string]types.AttributeValue) (uint64, error) {
	r := NewReader(table, VersionKey(), item)
	version := r.Uint(AttrSchemaVersion, 1)
	if r.Fault != nil {
		return 0, r.Fault
	}
	return version, nil
}
