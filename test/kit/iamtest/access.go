package iamtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Table is the table that calls are about.
type Table struct {
	Name   string
	ARN    string
	Key    string            // its partition key
	Stream string            // ARN of its stream
	Keys   map[string]string // partition keys of indexes, by name
}

// request has the keys and attributes that the calls of the API name.
type request struct {
	TableName                 string                     `json:"TableName"`
	StreamArn                 string                     `json:"StreamArn"`
	IndexName                 string                     `json:"IndexName"`
	Key                       map[string]attribute       `json:"Key"`
	Item                      map[string]attribute       `json:"Item"`
	RequestItems              map[string]json.RawMessage `json:"RequestItems"`
	KeyConditionExpression    string                     `json:"KeyConditionExpression"`
	ExpressionAttributeNames  map[string]string          `json:"ExpressionAttributeNames"`
	ExpressionAttributeValues map[string]attribute       `json:"ExpressionAttributeValues"`
	TransactItems             []map[string]request       `json:"TransactItems"`
}

// attribute is a value, of which only a text matters.
type attribute struct {
	S string `json:"S"`
}

// Accesses returns the permissions that a call needs, by the operation and the body of its
// request.
func Accesses(t Table, operation string, body []byte) ([]Access, error) {
	var r request
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", operation, err)
	}
	switch operation {
	case "TransactWriteItems":
		return t.transaction(&r)
	case "BatchGetItem", "BatchWriteItem":
		return t.batch(operation, &r)
	case "Query":
		return t.query(&r)
	case "GetItem", "PutItem", "UpdateItem", "DeleteItem":
		a, err := t.item(operation, &r)
		return []Access{a}, err
	case "DescribeStream", "GetShardIterator":
		return []Access{{Action: "dynamodb:" + operation, Resource: t.Stream}}, t.ownStream(r.StreamArn)
	case "GetRecords": // its iterator names the stream, in a form that DynamoDB alone reads
		return []Access{{Action: "dynamodb:" + operation, Resource: t.Stream}}, nil
	default: // of the whole table: no keys
		return []Access{{Action: "dynamodb:" + operation, Resource: t.ARN}}, t.own(r.TableName)
	}
}

// own refuses calls of other tables.
func (t Table) own(name string) error {
	if name != t.Name {
		return fmt.Errorf("the call is about table %q, not %q", name, t.Name)
	}
	return nil
}

// ownStream refuses calls of streams of other tables. The ARN is of the DynamoDB that is asked.
func (t Table) ownStream(arn string) error {
	if !strings.Contains(arn, ":table/"+t.Name+"/stream/") {
		return fmt.Errorf("the call is about stream %q, not one of table %q", arn, t.Name)
	}
	return nil
}

// item is a call of one item.
func (t Table) item(operation string, r *request) (Access, error) {
	record := r.Key
	if operation == "PutItem" {
		record = r.Item
	}
	attributes := map[string]bool{}
	for name := range record {
		attributes[name] = true
	}
	for _, name := range r.ExpressionAttributeNames {
		attributes[name] = true
	}
	return Access{
		Action: "dynamodb:" + operation, Resource: t.ARN, Keys: []string{record[t.Key].S},
		Attributes: slices.Sorted(maps.Keys(attributes)),
	}, t.own(r.TableName)
}

// transaction needs for each of its writes the permissions of that write alone.
func (t Table) transaction(r *request) ([]Access, error) {
	var accesses []Access
	for _, write := range r.TransactItems {
		for kind, one := range write {
			operation := map[string]string{"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem", "ConditionCheck": "ConditionCheckItem"}[kind]
			if operation == "" {
				return nil, fmt.Errorf("a write of the kind %q is not known", kind)
			}
			a, err := t.item(operation, &one)
			if err != nil {
				return nil, err
			}
			accesses = append(accesses, a)
		}
	}
	return accesses, nil
}

func (t Table) batch(operation string, r *request) ([]Access, error) {
	a := Access{Action: "dynamodb:" + operation, Resource: t.ARN}
	for name, text := range r.RequestItems {
		if err := t.own(name); err != nil {
			return nil, err
		}
		keys, err := t.batchKeys(operation, text)
		if err != nil {
			return nil, err
		}
		a.Keys = append(a.Keys, keys...)
	}
	return []Access{a}, nil
}

func (t Table) batchKeys(operation string, text json.RawMessage) ([]string, error) {
	var keys []string
	if operation == "BatchGetItem" {
		var get struct {
			Keys []map[string]attribute `json:"Keys"`
		}
		err := json.Unmarshal(text, &get)
		for _, k := range get.Keys {
			keys = append(keys, k[t.Key].S)
		}
		return keys, err
	}
	var writes []struct {
		Put    request `json:"PutRequest"`
		Delete request `json:"DeleteRequest"`
	}
	err := json.Unmarshal(text, &writes)
	for _, w := range writes {
		for _, record := range []map[string]attribute{w.Put.Item, w.Delete.Key} {
			if record != nil {
				keys = append(keys, record[t.Key].S)
			}
		}
	}
	return keys, err
}

var equality = regexp.MustCompile(`([#\w]+)\s*=\s*(:\w+)`)

// query finds the partition key in the condition.
func (t Table) query(r *request) ([]Access, error) {
	a, key := Access{Action: "dynamodb:Query", Resource: t.ARN}, t.Key
	if r.IndexName != "" {
		a.Resource += "/index/" + r.IndexName
		key = t.Keys[r.IndexName]
	}
	for _, m := range equality.FindAllStringSubmatch(r.KeyConditionExpression, -1) {
		name := m[1]
		if strings.HasPrefix(name, "#") {
			name = r.ExpressionAttributeNames[name]
		}
		if name == key {
			a.Keys = append(a.Keys, r.ExpressionAttributeValues[m[2]].S)
		}
	}
	if len(a.Keys) != 1 {
		return nil, fmt.Errorf("the condition %q names %d partition keys %s", r.KeyConditionExpression, len(a.Keys), key)
	}
	return []Access{a}, t.own(r.TableName)
}
