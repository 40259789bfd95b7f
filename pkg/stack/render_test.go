package stack_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"github.com/ratelimit/ratelimit/pkg/stack"
)

// template is a rendered one, as tests read it.
type template struct {
	Parameters map[string]any `json:"Parameters"`
	Resources  map[string]struct {
		Type           string         `json:"Type"`
		DeletionPolicy string         `json:"DeletionPolicy"`
		Properties     map[string]any `json:"Properties"`
	} `json:"Resources"`
	Outputs map[string]any `json:"Outputs"`
}

func rendered(t *testing.T, o stack.Options) template {
	t.Helper()
	r, err := stack.Render(o)
	if err != nil {
		t.Fatal(err)
	}
	text, err := r.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var got template
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	return got
}

// everything has every option that adds something.
func everything() stack.Options {
	return stack.Options{
		Name: "limits", Tags: map[string]string{"team": "edge"}, DeletionProtection: true, RecoveryDays: 7,
		IAM: stack.IAM{
			Roles: true, Trust: stack.TrustPods, Process: true, ProcessArchive: "s3://audit-events/audit", Boundary: "boundary", RoleFormat: "r-{}", PolicyFormat: "p-{}",
			Namespaces: []stack.Namespace{{Name: "web", ID: "abcdefghijk"}, {Name: "später", ID: "-_cdefghijk"}},
		},
		Alarms: stack.Alarms{Topic: "arn:aws:sns:eu-central-1:123456789012:pages", Throttles: 10, DurationPercent: 50, LagSeconds: 60},
		Aggregator: stack.Aggregator{
			On: true, Code: stack.Code{Bucket: "code", Key: "a.zip", Version: "v1"}, MemoryMiB: 512, TimeoutSeconds: 30, LogDays: 7,
			Tracing: true, Architecture: stack.ArchAMD64, Windows: []string{"day", "month"}, UsageDays: 400, Archive: stack.Archive{GlacierDays: 10},
			Config: "s3://fleet/a/ratelimit.yaml",
		},
	}
}

// at returns the value at a path of keys and positions.
func at(t *testing.T, value any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch key := step.(type) {
		case string:
			value = value.(map[string]any)[key]
		case int:
			value = value.([]any)[key]
		}
	}
	return value
}

// names returns the logical names of the resources of a type.
func (got template) names(kind string) string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(got.Resources)) {
		if got.Resources[name].Type == kind {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

func TestRoles(t *testing.T) {
	if got := rendered(t, stack.Options{Name: "limits"}); got.names("AWS::IAM::ManagedPolicy") != "FullPolicy ReadOnlyPolicy TakeOnlyPolicy" || got.names("AWS::IAM::Role") != "" {
		t.Errorf("by default: %s; %s", got.names("AWS::IAM::ManagedPolicy"), got.names("AWS::IAM::Role"))
	}
	off := rendered(t, stack.Options{Name: "limits", IAM: stack.IAM{Off: true}, Aggregator: stack.Aggregator{On: true, RoleARN: "arn:aws:iam::123456789012:role/x"}})
	if off.names("AWS::IAM::ManagedPolicy") != "" || off.names("AWS::IAM::Role") != "" || off.Resources["Aggregator"].Properties["Role"] != "arn:aws:iam::123456789012:role/x" {
		t.Errorf("without IAM: %v", off.Resources)
	}
	all := rendered(t, everything())
	if got, want := all.names("AWS::IAM::Role"), "AggregateRole AggregatorRole FullRole ReadOnlyRole TakeOnlyRole"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	role := all.Resources["TakeOnlyRole"].Properties
	if role["RoleName"] != "r-limits-take-only" || at(t, role, "PermissionsBoundary", "Fn::Sub") != "arn:${AWS::Partition}:iam::${AWS::AccountId}:policy/boundary" {
		t.Errorf("the role: %v", role)
	}
	if got := at(t, role, "AssumeRolePolicyDocument", "Statement", 0, "Principal", "Service"); got != "pods.eks.amazonaws.com" {
		t.Errorf("it trusts %v", got)
	}
	if got := strings.Fields(all.names("AWS::IAM::ManagedPolicy")); len(got) != 10 {
		t.Errorf("policies: got %v, want three for the table, three for each namespace and that of the process", got)
	}
}

// The policy of an aggregator that runs as a process allows to put objects below the place of its
// archive, and nothing else of S3.
func TestProcess(t *testing.T) {
	for archive, want := range map[string]any{
		"": nil, "s3://audit-events": "audit-events/*", "s3://audit-events/audit": "audit-events/audit/*", "s3://audit-events/a/b/": "audit-events/a/b/*",
	} {
		r := rendered(t, stack.Options{Name: "limits", IAM: stack.IAM{Process: true, ProcessArchive: archive}})
		var got any
		for _, s := range at(t, r.Resources["AggregatePolicy"].Properties, "PolicyDocument", "Statement").([]any) {
			if action := at(t, s, "Action", 0).(string); strings.HasPrefix(action, "s3:") {
				got = at(t, s, "Resource", 0, "Fn::Sub")
				if action != "s3:PutObject" {
					t.Errorf("%s is allowed", action)
				}
			}
		}
		if want != nil {
			want = "arn:${AWS::Partition}:s3:::" + want.(string)
		}
		if got != want {
			t.Errorf("archive %q: the policy allows %v, want %v", archive, got, want)
		}
	}
}

// Each option of the aggregator is in the template.
func TestAggregator(t *testing.T) {
	if got := rendered(t, stack.Options{Name: "limits"}); got.names("AWS::Lambda::Function") != "" || len(got.Parameters) != 0 {
		t.Errorf("by default: %v", got)
	}
	got := rendered(t, everything())
	function := got.Resources["Aggregator"].Properties
	for _, test := range []struct {
		path []any
		want any
	}{
		{[]any{"MemorySize"}, 512.0},
		{[]any{"Timeout"}, 30.0},
		{[]any{"TracingConfig", "Mode"}, "Active"},
		{[]any{"Code", "S3ObjectVersion"}, "v1"},
		{[]any{"Environment", "Variables", "RATELIMIT_WINDOWS"}, "day,month"},
		{[]any{"Environment", "Variables", "RATELIMIT_KEEP"}, "day=9600h,month=9600h"},
		{[]any{"Environment", "Variables", "RATELIMIT_ARCHIVE", "Fn::Sub"}, "s3://${AuditArchive}/audit"},
		{[]any{"Environment", "Variables", "RATELIMIT_CONFIG"}, "s3://fleet/a/ratelimit.yaml"},
		{[]any{"Architectures", 0}, "x86_64"},
	} {
		if got := at(t, function, test.path...); got != test.want {
			t.Errorf("%v: got %v, want %v", test.path, got, test.want)
		}
	}
	if days := got.Resources["AggregatorLog"].Properties["RetentionInDays"]; days != 7.0 {
		t.Errorf("log: %v days", days)
	}
	rule := at(t, got.Resources["AuditArchive"].Properties, "LifecycleConfiguration", "Rules", 0, "Transitions", 0)
	if diff := cmp.Diff(map[string]any{"StorageClass": "GLACIER_IR", "TransitionInDays": 10.0}, rule); diff != "" {
		t.Errorf("archive:\n%s", diff)
	}
	o := everything()
	o.Aggregator.Code, o.Aggregator.Archive.Off = stack.Code{}, true
	got = rendered(t, o)
	if len(got.Parameters) != 2 || got.names("AWS::S3::Bucket") != "" || len(at(t, got.Resources["AggregatorSource"].Properties, "FilterCriteria", "Filters").([]any)) != 1 {
		t.Errorf("without code and archive: %v, %s", got.Parameters, got.names("AWS::S3::Bucket"))
	}
}

// The function's role reads one object of the configuration's bucket, and none without a configuration.
func TestAggregatorReadsItsConfiguration(t *testing.T) {
	policy := func(config string) string {
		o := stack.Options{Name: "limits", Aggregator: stack.Aggregator{On: true, Config: config}}
		text, err := json.Marshal(at(t, rendered(t, o).Resources["AggregatorRole"].Properties, "Policies", 0, "PolicyDocument"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	got := policy("s3://fleet/a/ratelimit.yaml")
	for _, want := range []string{`"Action":["s3:GetObject"]`, `"Resource":[{"Fn::Sub":"arn:${AWS::Partition}:s3:::fleet/a/ratelimit.yaml"}]`, `"dynamodb:Query"`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if got := policy(""); strings.Contains(got, "s3:GetObject") || strings.Contains(got, "dynamodb:Query") {
		t.Errorf("without a configuration:\n%s", got)
	}
}

// As many namespaces as are allowed fit into a template, and every policy into IAM's limit.
func TestSizes(t *testing.T) {
	o := everything()
	o.IAM.Namespaces = nil
	for i := range 6 {
		o.IAM.Namespaces = append(o.IAM.Namespaces, stack.Namespace{Name: strings.Repeat("n", 199) + strconv.Itoa(i), ID: fmt.Sprintf("abcdefghij%d", i)})
	}
	got := rendered(t, o)
	for name, r := range got.Resources {
		if r.Type != "AWS::IAM::ManagedPolicy" {
			continue
		}
		text, err := json.Marshal(r.Properties["PolicyDocument"])
		if err != nil {
			t.Fatal(err)
		}
		if size := len(text) + 6*80; size > 6144 { // references become ARNs
			t.Errorf("%s has about %d characters; IAM allows 6144", name, size)
		}
	}
	o.IAM.Namespaces = append(o.IAM.Namespaces, stack.Namespace{Name: "one more"})
	wantProblems(t, o, []string{"has 7; at most 6"})
}

// YAML and JSON are the same template.
func TestYAML(t *testing.T) {
	r, err := stack.Render(everything())
	if err != nil {
		t.Fatal(err)
	}
	asYAML, err := r.YAML()
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := r.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var one, other any
	if err := yaml.Unmarshal(asYAML, &one); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(asJSON, &other); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(other, one); diff != "" {
		t.Errorf("(-JSON +YAML):\n%s", diff)
	}
}

// A template is the same each time: CloudFormation sees a change only where there is one.
func TestRenderIsStable(t *testing.T) {
	var texts [2]string
	for i := range texts {
		r, err := stack.Render(everything())
		if err != nil {
			t.Fatal(err)
		}
		text, err := r.JSON()
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(text)
	}
	if texts[0] != texts[1] {
		t.Error("two renderings differ")
	}
}

func ExampleRender() {
	r, err := stack.Render(stack.Options{Name: "limits", RecoveryDays: 7})
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := r.YAML()
	fmt.Println(strings.Contains(string(text), "RecoveryPeriodInDays: 7"), err)
	// Output: true <nil>
}

// The page lists the actions that a role for the function needs: all those of the stack's role, and
// no other.
func TestPageHasTheActionsOfTheAggregator(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "aws.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "| actions | on |")
	section, _, found := strings.Cut(section, "\n\n")
	if !found {
		t.Fatal("docs/aws.md has no table of actions")
	}
	want := map[string]bool{}
	for _, statement := range at(t, rendered(t, everything()).Resources["AggregatorRole"].Properties, "Policies", 0, "PolicyDocument", "Statement").([]any) {
		for _, action := range at(t, statement, "Action").([]any) {
			want[action.(string)] = true
		}
	}
	got := map[string]bool{}
	for _, action := range regexp.MustCompile("`([a-z0-9]+:[A-Za-z]+)`").FindAllStringSubmatch(section, -1) {
		got[action[1]] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("actions (-role +page):\n%s", diff)
	}
}
