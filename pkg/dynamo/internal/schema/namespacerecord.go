package schema

import (
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Attributes of the registry of namespaces.
const (
	AttrNamespaceID   = "namespace_id"
	AttrNamespaceName = "name"
)

const (
	idChars    = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	nsIDLength = 11
)

// IsNamespaceID reports whether s has the form of a namespace's id.
func IsNamespaceID(s string) bool { return len(s) == nsIDLength && strings.Trim(s, idChars) == "" }

// NamespaceItem returns a record of the registry of namespaces.
func NamespaceItem(k Key, name, id string, now time.Time) map[string]types.AttributeValue {
	item := k.Attributes()
	item[AttrNamespaceID] = &types.AttributeValueMemberS{Value: id}
	item[attrCreatedAt] = NumberAttribute(now.UnixMilli())
	if attribute := NameAttribute(name); attribute != nil {
		item[AttrNamespaceName] = attribute
	}
	return item
}

// ParseNamespaceID reads the id of a namespace from its record.
func ParseNamespaceID(table string, k Key, item map[string]types.AttributeValue) (string, error) {
	r := NewReader(table, k, item)
	id := r.Text(AttrNamespaceID)
	if !IsNamespaceID(id) {
		r.Fail(AttrNamespaceID, "is %.100q; it must be %d letters, digits, '-' or '_'", id, nsIDLength)
	}
	if r.Fault != nil {
		return "", r.Fault
	}
	return id, nil
}
