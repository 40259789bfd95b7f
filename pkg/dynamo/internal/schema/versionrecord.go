package schema

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// componentPrefix begins the attributes of the version record with versions of components.
const componentPrefix = "component_"

// Versions are the versions of a table: of its layout, and the greatest that the items of
// each of its components may have.
type Versions struct {
	Table      uint64
	Components map[string]int // by name, 1 or more; one that is missing has version 1
}

// Of returns the version of a component.
func (v Versions) Of(component string) int { return max(1, v.Components[component]) }

// VersionItem returns the version record.
func VersionItem(v Versions) map[string]types.AttributeValue {
	item := VersionKey().Attributes()
	item[AttrSchemaVersion] = NumberAttribute(v.Table)
	for name, n := range v.Components {
		item[componentPrefix+name] = NumberAttribute(n)
	}
	return item
}

// ParseVersions reads the version record.
func ParseVersions(table string, item map[string]types.AttributeValue) (Versions, error) {
	r := NewReader(table, VersionKey(), item)
	v := Versions{Table: r.Uint(AttrSchemaVersion, 1)}
	for _, attr := range slices.Sorted(maps.Keys(item)) {
		if name, ok := strings.CutPrefix(attr, componentPrefix); ok {
			if v.Components == nil {
				v.Components = make(map[string]int)
			}
			v.Components[name] = int(r.Int(attr, 1, math.MaxInt32))
		}
	}
	if r.Fault != nil {
		return Versions{}, r.Fault
	}
	return v, nil
}

// RaiseVersions returns the update that gives components of the version record other
// versions. It is refused where one of them is not as it was read.
func RaiseVersions(table string, read Versions, to map[string]int) *dynamodb.UpdateItemInput {
	e := NewExpression()
	for _, name := range slices.Sorted(maps.Keys(to)) {
		attr := componentPrefix + name
		if n, found := read.Components[name]; found {
			e.Require(attr, "=", NumberAttribute(n))
		} else {
			e.RequireAbsent(attr)
		}
		e.Set(attr, NumberAttribute(to[name]))
	}
	return e.Input(table, VersionKey())
}
