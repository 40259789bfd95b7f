package iamtest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/test/kit/iamtest"
)

const arn = "arn:aws:dynamodb:eu-central-1:123456789012:table/t"

var table = iamtest.Table{Name: "t", ARN: arn, Key: "PK", Keys: map[string]string{"GSI1": "GSI1PK"}}

func parsed(t *testing.T, statement string) *iamtest.Policy {
	t.Helper()
	p, err := iamtest.Parse([]byte(`{"Statement": [`+statement+`]}`), map[string]string{"Table.Arn": arn})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAccesses(t *testing.T) {
	get := func(action string, keys ...string) iamtest.Access {
		return iamtest.Access{Action: "dynamodb:" + action, Resource: arn, Keys: keys}
	}
	with := func(a iamtest.Access, attributes ...string) iamtest.Access {
		a.Attributes = attributes
		return a
	}
	index := get("Query", "k")
	index.Resource += "/index/GSI1"
	for _, test := range []struct {
		operation, body string
		want            []iamtest.Access
	}{
		{"DescribeTable", `{}`, []iamtest.Access{get("DescribeTable")}},
		{"GetItem", `{"Key": {"PK": {"S": "k"}, "SK": {"S": "s"}}}`, []iamtest.Access{with(get("GetItem", "k"), "PK", "SK")}},
		{"PutItem", `{"Item": {"PK": {"S": "k"}, "n": {"N": "1"}}}`, []iamtest.Access{with(get("PutItem", "k"), "PK", "n")}},
		{"UpdateItem", `{"Key": {"PK": {"S": "k"}}, "ExpressionAttributeNames": {"#n": "n"}}`, []iamtest.Access{with(get("UpdateItem", "k"), "PK", "n")}},
		{"BatchGetItem", `{"RequestItems": {"t": {"Keys": [{"PK": {"S": "a"}}, {"PK": {"S": "b"}}]}}}`, []iamtest.Access{get("BatchGetItem", "a", "b")}},
		{
			"BatchWriteItem", `{"RequestItems": {"t": [{"PutRequest": {"Item": {"PK": {"S": "a"}}}}, {"DeleteRequest": {"Key": {"PK": {"S": "b"}}}}]}}`,
			[]iamtest.Access{get("BatchWriteItem", "a", "b")},
		},
		{
			"TransactWriteItems", `{"TransactItems": [{"Put": {"TableName": "t", "Item": {"PK": {"S": "a"}}}}, {"Delete": {"TableName": "t", "Key": {"PK": {"S": "b"}}}}]}`,
			[]iamtest.Access{with(get("PutItem", "a"), "PK"), with(get("DeleteItem", "b"), "PK")},
		},
		{
			"Query", `{"KeyConditionExpression": "#pk = :pk AND SK > :sk", "ExpressionAttributeNames": {"#pk": "PK"}, "ExpressionAttributeValues": {":pk": {"S": "k"}, ":sk": {"S": "s"}}}`,
			[]iamtest.Access{get("Query", "k")},
		},
		{"Query", `{"IndexName": "GSI1", "KeyConditionExpression": "GSI1PK=:k", "ExpressionAttributeValues": {":k": {"S": "k"}}}`, []iamtest.Access{index}},
	} {
		body := test.body
		if !strings.Contains(body, "Items") {
			body = `{"TableName": "t", ` + strings.TrimPrefix(body, "{")
			body = strings.Replace(body, ", }", "}", 1)
		}
		got, err := iamtest.Accesses(table, test.operation, []byte(body))
		if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", test.operation, err, diff)
		}
	}
}

func TestAccessesRefuse(t *testing.T) {
	for operation, body := range map[string]string{
		"GetItem":            `{"TableName": "other", "Key": {"PK": {"S": "k"}}}`,
		"Scan":               `{"TableName": "other"}`,
		"Query":              `{"TableName": "t", "KeyConditionExpression": "SK = :k"}`,
		"BatchGetItem":       `{"RequestItems": {"other": {"Keys": []}}}`,
		"TransactWriteItems": `{"TransactItems": [{"Drop": {"TableName": "t"}}]}`,
		"PutItem":            `[]`,
	} {
		if got, err := iamtest.Accesses(table, operation, []byte(body)); err == nil {
			t.Errorf("%s: got %v, want an error", operation, got)
		}
	}
}

func TestAllows(t *testing.T) {
	const keys = `"Condition": {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["???/BUCKET#*", "_/SYSTEM#"]}, "Null": {"dynamodb:LeadingKeys": "false"}, "ForAllValues:StringEquals": {"dynamodb:Attributes": ["PK", "n"]}}`
	p := parsed(t, `{"Effect": "Allow", "Action": ["dynamodb:Get*"], "Resource": [{"Fn::GetAtt": ["Table", "Arn"]}], `+keys+`}`)
	for _, test := range []struct {
		action, resource, keys, attributes string
		want                               bool
	}{
		{"GetItem", arn, "abc/BUCKET#a#b#0", "PK n", true},
		{"GetItem", arn, "abc/BUCKET#a/b#0 _/SYSTEM#", "PK", true},
		{"GetItem", arn, "abcd/BUCKET#a", "PK", false},
		{"GetItem", arn, "_/BUCKET#a", "PK", false},
		{"GetItem", arn, "abc/BUCKET#a abc/ENTITY#a", "PK", false},
		{"GetItem", arn, "_/SYSTEM#x", "PK", false},
		{"GetItem", arn, "", "PK", false},
		{"GetItem", arn, "_/SYSTEM#", "PK m", false},
		{"PutItem", arn, "_/SYSTEM#", "PK", false},
		{"GetItem", arn + "2", "_/SYSTEM#", "PK", false},
		{"GetItem", arn + "/index/GSI1", "_/SYSTEM#", "PK", false},
	} {
		a := iamtest.Access{Action: "dynamodb:" + test.action, Resource: test.resource, Keys: strings.Fields(test.keys), Attributes: strings.Fields(test.attributes)}
		if got := p.Allows(a); got != test.want {
			t.Errorf("%+v: got %v", a, got)
		}
	}
	indexes := parsed(t, `{"Effect": "Allow", "Action": ["dynamodb:Query"], "Resource": [{"Fn::Sub": "${Table.Arn}/index/*"}]}`)
	if !indexes.Allows(iamtest.Access{Action: "dynamodb:Query", Resource: arn + "/index/GSI1"}) || indexes.Allows(iamtest.Access{Action: "dynamodb:Query", Resource: arn}) {
		t.Error("a policy of the indexes: it must allow them and not the table")
	}
}

func TestParseRefusesWhatItDoesNotKnow(t *testing.T) {
	for _, text := range []string{
		`{"Statement": []}`,
		`{"Statement": [{"Effect": "Deny"}]}`,
		`{"Statement": [{"Effect": "Allow", "Resource": [{"Ref": "Table"}]}]}`,
		`{"Statement": [{"Effect": "Allow", "Resource": ["${Bucket.Arn}"]}]}`,
		`{"Statement": [{"Effect": "Allow", "Condition": {"StringLike": {"dynamodb:LeadingKeys": "a"}}}]}`,
	} {
		if _, err := iamtest.Parse([]byte(text), nil); err == nil {
			t.Errorf("%s is not refused", text)
		}
	}
	if _, err := iamtest.FromTemplate([]byte(`{"Resources": {"A": {"Type": "AWS::S3::Bucket"}}}`), "A", nil); err == nil {
		t.Error("a resource that is no policy is not refused")
	}
}

func ExamplePolicy_Allows() {
	policy, err := iamtest.Parse([]byte(`{"Statement": [{"Effect": "Allow", "Action": ["dynamodb:Get*"], "Resource": ["*"]}]}`), nil)
	if err == nil {
		fmt.Println(policy.Allows(iamtest.Access{Action: "dynamodb:GetItem", Resource: arn}))
	}
	// Output: true
}
