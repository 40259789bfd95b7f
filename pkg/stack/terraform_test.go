package stack_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/stack"
)

var update = flag.Bool("update", false, "write the files of terraform that are made from definitions")

// The module's table and policies are those of the stack.
func TestTerraform(t *testing.T) {
	files := map[string]string{"table.tf": terraformTable()}
	maps.Copy(files, terraformPolicies(t))
	filters, err := json.MarshalIndent(stack.StreamFilters(true), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	files["stream-filters.json"] = string(filters) + "\n"
	for name, want := range files {
		path := filepath.Join("..", "..", "terraform", name)
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != want {
			t.Errorf("terraform/%s differs from the definition (%v); `go test ./pkg/stack -run TestTerraform -update` writes it", name, err)
		}
	}
	made, err := filepath.Glob(filepath.Join("..", "..", "terraform", "policies", "*"))
	if err != nil || len(made) != len(files)-2 {
		t.Errorf("terraform/policies has %d files, want %d: %v", len(made), len(files)-2, err)
	}
}

// terraformTable returns the table as a resource of Terraform.
func terraformTable() string {
	in := dynamo.TableInput("name")
	b := new(strings.Builder)
	fmt.Fprintf(b, `# Made from the program's definition: go test ./pkg/stack -run TestTerraform -update

resource "aws_dynamodb_table" "this" {
  name         = var.name
  billing_mode = %q
  hash_key     = %q
  range_key    = %q

  stream_enabled   = true
  stream_view_type = %q

  deletion_protection_enabled = var.deletion_protection
`, in.BillingMode, aws.ToString(in.KeySchema[0].AttributeName), aws.ToString(in.KeySchema[1].AttributeName), in.StreamSpecification.StreamViewType)
	for _, a := range in.AttributeDefinitions {
		fmt.Fprintf(b, "\n  attribute {\n    name = %q\n    type = %q\n  }\n", aws.ToString(a.AttributeName), a.AttributeType)
	}
	for i := range in.GlobalSecondaryIndexes {
		terraformIndex(b, &in.GlobalSecondaryIndexes[i])
	}
	fmt.Fprintf(b, `
  ttl {
    attribute_name = %q
    enabled        = true
  }

  point_in_time_recovery {
    enabled                 = var.recovery_days > 0
    recovery_period_in_days = var.recovery_days > 0 ? var.recovery_days : null
  }

  tags = var.tags
}
`, dynamo.TTLAttribute)
	return b.String()
}

func terraformIndex(b *strings.Builder, g *types.GlobalSecondaryIndex) {
	included := make([]string, 0, len(g.Projection.NonKeyAttributes))
	for _, name := range g.Projection.NonKeyAttributes {
		included = append(included, fmt.Sprintf("%q", name))
	}
	values := [][2]string{
		{"name", fmt.Sprintf("%q", aws.ToString(g.IndexName))},
		{"hash_key", fmt.Sprintf("%q", aws.ToString(g.KeySchema[0].AttributeName))},
		{"range_key", fmt.Sprintf("%q", aws.ToString(g.KeySchema[1].AttributeName))},
		{"projection_type", fmt.Sprintf("%q", g.Projection.ProjectionType)},
	}
	if len(included) > 0 {
		values = append(values, [2]string{"non_key_attributes", "[" + strings.Join(included, ", ") + "]"})
	}
	width := 0
	for _, v := range values {
		width = max(width, len(v[0]))
	}
	b.WriteString("\n  global_secondary_index {\n")
	for _, v := range values {
		fmt.Fprintf(b, "    %-*s = %s\n", width, v[0], v[1])
	}
	b.WriteString("  }\n")
}

// terraformPolicies returns the policies of the stack as templates of Terraform.
func terraformPolicies(t *testing.T) map[string]string {
	t.Helper()
	const id = "abcdefghijk"
	resources := rendered(t, stack.Options{
		Name: "name", IAM: stack.IAM{Process: true, Namespaces: []stack.Namespace{{Name: "web", ID: id}}},
		Aggregator: stack.Aggregator{On: true, Archive: stack.Archive{Off: true}},
	}).Resources
	files := map[string]string{}
	add := func(file string, policy any) {
		text, err := json.MarshalIndent(asTerraform(t, policy, id), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Join("policies", file+".json.tftpl")] = string(text) + "\n"
	}
	add("aggregator-config", terraformConfigPolicy(t))
	add("aggregator", at(t, resources["AggregatorRole"].Properties, "Policies", 0, "PolicyDocument"))
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		logical, isPolicy := strings.CutSuffix(strings.SplitAfter(name+"Policy", "Policy")[0], "Policy")
		if !isPolicy || resources[name].Type != "AWS::IAM::ManagedPolicy" {
			continue
		}
		file := map[string]string{"TakeOnly": "take-only", "Full": "full", "ReadOnly": "read-only", "Aggregate": "aggregate"}[logical]
		if name != logical+"Policy" {
			file += "-namespace"
		}
		add(file, resources[name].Properties["PolicyDocument"])
	}
	return files
}

// terraformConfigPolicy returns the policy that a function has for its configuration alone.
func terraformConfigPolicy(t *testing.T) any {
	t.Helper()
	policy := func(config string) map[string]any {
		o := stack.Options{Name: "name", Aggregator: stack.Aggregator{On: true, Config: config, Archive: stack.Archive{Off: true}}}
		return at(t, rendered(t, o).Resources["AggregatorRole"].Properties, "Policies", 0, "PolicyDocument").(map[string]any)
	}
	without, with := policy("")["Statement"].([]any), policy("s3://fleet/a.yaml")
	with["Statement"] = slices.DeleteFunc(with["Statement"].([]any), func(s any) bool {
		return slices.ContainsFunc(without, func(other any) bool { return cmp.Equal(s, other) })
	})
	return with
}

// asTerraform replaces the references of a template of CloudFormation.
func asTerraform(t *testing.T, value any, id string) any {
	t.Helper()
	switch v := value.(type) {
	case map[string]any:
		if attribute, is := v["Fn::GetAtt"]; is {
			name := fmt.Sprint(attribute)
			variable, known := map[string]string{
				"[Table Arn]": "${table}", "[Table StreamArn]": "${stream}", "[AggregatorLog Arn]": "${log}", "[AggregatorDeadLetters Arn]": "${queue}",
			}[name]
			if !known {
				t.Errorf("a policy refers to %s, which no variable has", name)
			}
			return variable
		}
		if text, is := v["Fn::Sub"].(string); is {
			return strings.NewReplacer("${Table.Arn}", "${table}", "arn:${AWS::Partition}:s3:::fleet/a.yaml", "${object}").Replace(text)
		}
		for key := range v {
			v[key] = asTerraform(t, v[key], id)
		}
	case []any:
		for i := range v {
			v[i] = asTerraform(t, v[i], id)
		}
	case string:
		return strings.ReplaceAll(v, id, "${namespace}")
	}
	return value
}

// The module's event source and function have the settings of the stack's.
func TestTerraformAggregator(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "terraform", "aggregator.tf"))
	if err != nil {
		t.Fatal(err)
	}
	resources := rendered(t, stack.Options{Name: "name", Aggregator: stack.Aggregator{On: true}}).Resources
	source, function := resources["AggregatorSource"].Properties, resources["Aggregator"].Properties
	for attribute, value := range map[string]any{
		"starting_position":                  fmt.Sprintf("%q", source["StartingPosition"]),
		"batch_size":                         source["BatchSize"],
		"maximum_batching_window_in_seconds": source["MaximumBatchingWindowInSeconds"],
		"maximum_retry_attempts":             source["MaximumRetryAttempts"],
		"maximum_record_age_in_seconds":      source["MaximumRecordAgeInSeconds"],
		"tumbling_window_in_seconds":         source["TumblingWindowInSeconds"],
		"bisect_batch_on_function_error":     source["BisectBatchOnFunctionError"],
		"function_response_types":            fmt.Sprintf("%q", source["FunctionResponseTypes"]),
		"runtime":                            fmt.Sprintf("%q", function["Runtime"]),
		"handler":                            fmt.Sprintf("%q", function["Handler"]),
		"message_retention_seconds":          fmt.Sprintf("%.0f", resources["AggregatorDeadLetters"].Properties["MessageRetentionPeriod"]),
	} {
		found := regexp.MustCompile(`(?m)^\s*` + attribute + `\s*= (.*)$`).FindStringSubmatch(string(text))
		if found == nil || found[1] != fmt.Sprint(value) {
			t.Errorf("%s: got %q, want %v", attribute, found, value)
		}
	}
	variables, _ := at(t, function, "Environment", "Variables").(map[string]any)
	for _, name := range append(slices.Sorted(maps.Keys(variables)), "RATELIMIT_KEEP") {
		if !strings.Contains(string(text), name+" ") {
			t.Errorf("the module sets no %s", name)
		}
	}
}
