package catalog

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// newNamespaceID returns 11 random characters that are safe in URLs: almost 64 bits.
// The first is a letter or a digit, so that no command line takes an id for a flag.
func newNamespaceID() string {
	for {
		var b [8]byte
		_, _ = rand.Read(b[:]) // never fails
		if id := base64.RawURLEncoding.EncodeToString(b[:]); id[0] != '-' && id[0] != '_' {
			return id
		}
	}
}

// resolve returns a namespace, which it registers if it is new. Several processes
// that register one at once all get the same id.
func (t *table) resolve(ctx context.Context, name string, now time.Time) (schema.Namespace, error) {
	ns, err := t.lookup(ctx, name)
	if err != nil || ns.ID != "" {
		return ns, err
	}
	return t.register(ctx, name, now)
}

// lookup returns a namespace, the zero one where the name is not registered.
func (t *table) lookup(ctx context.Context, name string) (schema.Namespace, error) {
	var out *dynamodb.GetItemOutput
	var err error
	for try := 0; ; {
		out, err = t.items.GetItem(ctx, &dynamodb.GetItemInput{TableName: &t.name, Key: schema.NamespaceKey(name).Attributes(), ConsistentRead: aws.Bool(true)})
		if err == nil {
			break
		}
		if err = awsdb.TranslateRead(err); !awsdb.RetryRead(ctx, t.loop, &try, err) {
			return schema.Namespace{}, fmt.Errorf("namespace %.100q in table %s: %w", name, t.name, err)
		}
	}
	if out.Item == nil {
		return schema.Namespace{}, nil
	}
	return schema.ParseNamespace(t.name, schema.NamespaceKey(name), out.Item)
}

// register puts both records of a new namespace, or finds that another
// has just done so.
func (t *table) register(ctx context.Context, name string, now time.Time) (schema.Namespace, error) {
	for try := 0; ; {
		ns := schema.Namespace{Name: name, ID: newNamespaceID()}
		err := t.items.Transact(ctx, "", []*schema.ItemWrite{
			schema.PutNew(schema.NamespaceItem(schema.NamespaceKey(name), ns, now)),
			schema.PutNew(schema.NamespaceItem(schema.NamespaceIDKey(ns.ID), ns, now)),
		})
		if err == nil {
			return ns, nil
		}
		if code, item := awsdb.ReasonAt(err, 0); code == awsdb.ConditionFailed {
			return schema.ParseNamespace(t.name, schema.NamespaceKey(name), item)
		}
		if code, _ := awsdb.ReasonAt(err, 1); code == awsdb.ConditionFailed {
			continue // the id is taken: draw another
		}
		// One of unknown outcome may be tried again: if it was applied, the name is
		// taken.
		if err = awsdb.Translate(err); !awsdb.RetryRead(ctx, t.loop, &try, err) {
			return schema.Namespace{}, fmt.Errorf("registering namespace %.100q in table %s: %w", name, t.name, err)
		}
	}
}

// namespaceOf reads a record of the registry by its own key.
func namespaceOf(table string, item map[string]types.AttributeValue) (schema.Namespace, error) {
	k, err := schema.ItemKey(table, item)
	if err != nil {
		return schema.Namespace{}, err
	}
	return schema.ParseNamespace(table, k, item)
}

// NamespaceID returns the id of a namespace of a table, which it registers if it is new.
func NamespaceID(ctx context.Context, items awsdb.Items, name, namespace string, now time.Time) (string, error) {
	t := table{items: items, name: name, loop: awsdb.Goroutines{}}
	ns, err := t.resolve(ctx, namespace, now)
	return ns.ID, err
}
