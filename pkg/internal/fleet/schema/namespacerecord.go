package schema

import (
	"math"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Attributes of the registry of namespaces.
const (
	AttrNamespaceID   = "namespace_id"
	AttrNamespaceName = "name"
)

// Namespace is a record of the registry of namespaces.
type Namespace struct {
	Name string // "" where the record has it only as a part of its key
	ID   string
	Key  Key // of the record, where it was read

	CreatedAt time.Time // zero where it was not read
}

const (
	idChars    = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	nsIDLength = 11
)

// IsNamespaceID reports whether s has the form of a namespace's id.
func IsNamespaceID(s string) bool { return len(s) == nsIDLength && strings.Trim(s, idChars) == "" }

// NamespaceItem returns a record of the registry of namespaces.
func NamespaceItem(k Key, ns Namespace, now time.Time) map[string]types.AttributeValue {
	item := k.Attributes()
	item[AttrNamespaceID] = &types.AttributeValueMemberS{Value: ns.ID}
	item[AttrCreatedAt] = NumberAttribute(now.UnixMilli())
	if attribute := NameAttribute(ns.Name); attribute != nil {
		item[AttrNamespaceName] = attribute
	}
	return item
}

// ParseNamespace reads a record of the registry of namespaces.
func ParseNamespace(table string, k Key, item map[string]types.AttributeValue) (Namespace, error) {
	r := NewReader(table, k, item)
	ns := Namespace{Name: r.optionalText(AttrNamespaceName), ID: r.Text(AttrNamespaceID), Key: k}
	if !IsNamespaceID(ns.ID) {
		r.Fail(AttrNamespaceID, "is %.100q; it must be %d letters, digits, '-' or '_'", ns.ID, nsIDLength)
	}
	if created, found := r.Optional(AttrCreatedAt, 0, math.MaxInt64); found {
		ns.CreatedAt = time.UnixMilli(created).UTC()
	}
	if r.Fault != nil {
		return Namespace{}, r.Fault
	}
	return ns, nil
}

// Title returns the name of a namespace that was read by its name: one that the record does
// not have in full as it stands in the key.
func (n *Namespace) Title() string {
	if n.Name == "" {
		return strings.TrimPrefix(n.Key.SK, skNamespacePrefix)
	}
	return n.Name
}
