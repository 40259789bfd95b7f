package stack_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/stack"
)

// The table is the one that the program itself creates.
func TestTable(t *testing.T) {
	properties := rendered(t, stack.Options{Name: "limits"}).Resources["Table"].Properties
	text, err := json.Marshal(dynamo.TableInput("limits"))
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"TableName", "BillingMode", "AttributeDefinitions", "KeySchema"} {
		if diff := cmp.Diff(want[key], properties[key]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
	for i, index := range want["GlobalSecondaryIndexes"].([]any) {
		for _, key := range []string{"IndexName", "KeySchema"} {
			if diff := cmp.Diff(at(t, index, key), at(t, properties, "GlobalSecondaryIndexes", i, key)); diff != "" {
				t.Errorf("index %d, %s (-want +got):\n%s", i, key, diff)
			}
		}
		if want, got := at(t, index, "Projection", "ProjectionType"), at(t, properties, "GlobalSecondaryIndexes", i, "Projection", "ProjectionType"); want != got {
			t.Errorf("index %d: projection %v, want %v", i, got, want)
		}
	}
	if got := at(t, properties, "StreamSpecification", "StreamViewType"); got != "NEW_AND_OLD_IMAGES" {
		t.Errorf("stream: %v", got)
	}
	if diff := cmp.Diff(map[string]any{"AttributeName": "ttl", "Enabled": true}, properties["TimeToLiveSpecification"]); diff != "" {
		t.Errorf("time to live:\n%s", diff)
	}
	if strings.Contains(fmt.Sprint(properties), "<nil>") {
		t.Errorf("null in %v", properties)
	}
}

// Protection and recovery are off until they are asked for.
func TestProtection(t *testing.T) {
	table := rendered(t, stack.Options{Name: "limits"}).Resources["Table"]
	if _, on := table.Properties["PointInTimeRecoverySpecification"]; on || table.DeletionPolicy != "Delete" || table.Properties["DeletionProtectionEnabled"] != false {
		t.Errorf("by default: %+v", table)
	}
	table = rendered(t, everything()).Resources["Table"]
	if diff := cmp.Diff(map[string]any{"PointInTimeRecoveryEnabled": true, "RecoveryPeriodInDays": 7.0}, table.Properties["PointInTimeRecoverySpecification"]); diff != "" {
		t.Errorf("recovery:\n%s", diff)
	}
	if table.DeletionPolicy != "Retain" || table.Properties["DeletionProtectionEnabled"] != true {
		t.Errorf("protected: %s, %v", table.DeletionPolicy, table.Properties["DeletionProtectionEnabled"])
	}
}

// The archive outlives its stack, with the policy that demands TLS, with and without protection.
func TestArchiveIsKept(t *testing.T) {
	for _, o := range []stack.Options{everything(), {Name: "limits", Aggregator: stack.Aggregator{On: true}}} {
		got := rendered(t, o)
		for _, name := range []string{"AuditArchive", "AuditArchivePolicy"} {
			if policy := got.Resources[name].DeletionPolicy; policy != "RetainExceptOnCreate" {
				t.Errorf("%s: %q", name, policy)
			}
		}
	}
}

// A stack on an existing table has no table, and all else refers to that table by its name.
func TestTemplateOfAnExistingTable(t *testing.T) {
	o := everything()
	o.ExistingTable, o.DeletionProtection, o.RecoveryDays = true, false, 0
	r, err := stack.Render(o)
	if err != nil {
		t.Fatal(err)
	}
	text, err := r.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), `"Table"]`) || strings.Contains(string(text), `"Ref":"Table"`) || strings.Contains(string(text), "${Table.") {
		t.Errorf("it refers to a table of its own: %s", text)
	}
	got := rendered(t, o)
	if got.names("AWS::DynamoDB::Table") != "" || got.Parameters["TableStreamArn"] == nil {
		t.Errorf("table %q, parameters %v", got.names("AWS::DynamoDB::Table"), got.Parameters)
	}
	o.StreamARN = "arn:aws:dynamodb:eu-central-1:123456789012:table/limits/stream/2026-11-22T20:38:42.002"
	got = rendered(t, o)
	if source := got.Resources["AggregatorSource"].Properties["EventSourceArn"]; source != o.StreamARN || len(got.Parameters) != 0 {
		t.Errorf("the function reads %v, parameters %v", source, got.Parameters)
	}
	for name, change := range map[string]func(*stack.Options){
		"deletion_protection": func(o *stack.Options) { o.DeletionProtection = true },
		"recovery_days":       func(o *stack.Options) { o.RecoveryDays = 7 },
		"stream_arn is \"arn": func(o *stack.Options) { o.StreamARN = "arn:aws:sns:eu-central-1:123456789012:x" },
		"stream_arn is of a":  func(o *stack.Options) { o.ExistingTable = false },
	} {
		wrong := o
		change(&wrong)
		wantProblems(t, wrong, []string{name})
	}
}
