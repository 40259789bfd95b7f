package stack_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/stack"
)

// Every mistake is reported, each with its option.
func TestCheck(t *testing.T) {
	for name, test := range map[string]struct {
		o    stack.Options
		want []string // parts of problems, one for each; none = the options are right
	}{
		"all defaults":      {stack.Options{Name: "ratelimit"}, nil},
		"no name":           {stack.Options{}, []string{`name is ""`}},
		"short name":        {stack.Options{Name: "ab"}, []string{"3 to 128"}},
		"name of a digit":   {stack.Options{Name: "1abc"}, []string{"begin with a letter"}},
		"name of dots":      {stack.Options{Name: "a.bc"}, []string{"name is"}},
		"long name":         {stack.Options{Name: strings.Repeat("a", 129)}, []string{"3 to 128"}},
		"longest name":      {stack.Options{Name: strings.Repeat("a", 128)}, nil},
		"recovery":          {stack.Options{Name: "abc", RecoveryDays: 36}, []string{"recovery_days is 36; it must be 1 to 35"}},
		"recovery below":    {stack.Options{Name: "abc", RecoveryDays: -1}, []string{"recovery_days"}},
		"trust":             {stack.Options{Name: "abc", IAM: stack.IAM{Trust: "lambda"}}, []string{"account, ecs, ec2, pods or irsa"}},
		"boundary":          {stack.Options{Name: "abc", IAM: stack.IAM{Boundary: "a b"}}, []string{"iam.boundary"}},
		"boundary, a role":  {stack.Options{Name: "abc", IAM: stack.IAM{Boundary: "arn:aws:iam::123456789012:role/x"}}, []string{"iam.boundary"}},
		"boundary by ARN":   {stack.Options{Name: "abc", IAM: stack.IAM{Boundary: "arn:aws-cn:iam::123456789012:policy/x/y"}}, nil},
		"no IAM, and roles": {stack.Options{Name: "abc", IAM: stack.IAM{Off: true, Roles: true}}, []string{"iam.off"}},
		"format":            {stack.Options{Name: "abc", IAM: stack.IAM{RoleFormat: "x"}}, []string{"iam.role_format"}},
		"format of two":     {stack.Options{Name: "abc", IAM: stack.IAM{PolicyFormat: "{}-{}"}}, []string{"it must have {} once", "beside {} it may"}},
		"format with a /":   {stack.Options{Name: "abc", IAM: stack.IAM{RoleFormat: "a/{}"}}, []string{"iam.role_format"}},
		"role name of 65":   {stack.Options{Name: strings.Repeat("a", 54), IAM: stack.IAM{Roles: true, RoleFormat: "x{}"}}, []string{"-take-only of 65 characters; IAM allows 64", "-read-only of 65"}},
		"role name of 64":   {stack.Options{Name: strings.Repeat("a", 53), IAM: stack.IAM{Roles: true, RoleFormat: "x{}"}}, nil},
		"policy name of 129": {
			stack.Options{Name: strings.Repeat("a", 119), IAM: stack.IAM{PolicyFormat: "{}"}},
			[]string{"-take-only of 129 characters; IAM allows 128", "-read-only of 129 characters; IAM allows 128"},
		},
		"namespace twice": {stack.Options{Name: "abc", IAM: stack.IAM{Namespaces: []stack.Namespace{{Name: "a"}, {Name: "a"}}}}, []string{`"a" twice`}},
		"namespace id":    {stack.Options{Name: "abc", IAM: stack.IAM{Namespaces: []stack.Namespace{{Name: "a", ID: "x"}}}}, []string{"11 letters"}},
		"topic":           {stack.Options{Name: "abc", Alarms: stack.Alarms{Topic: "pages"}}, []string{"alarms.topic"}},
		"alarms": {
			stack.Options{Name: "abc", Alarms: stack.Alarms{Throttles: -1, DurationPercent: 101, LagSeconds: 86401}},
			[]string{"alarms.throttles", "alarms.duration_percent is 101; it must be 1 to 100", "alarms.lag_seconds"},
		},
		"aggregator": {
			stack.Options{Name: "abc", Aggregator: stack.Aggregator{MemoryMiB: 64, TimeoutSeconds: 901, LogDays: 2, UsageDays: 3651, Architecture: "x86_64", RoleARN: "r", Windows: []string{"week", "day", "day"}, Archive: stack.Archive{GlacierDays: 3651}}},
			[]string{"memory_mib", "timeout_seconds", "log_days is 2; CloudWatch allows 1 3 5", "usage_days", "architecture", "glacier_days", "role_arn", `"week"`, `"day" twice`},
		},
		"config":                 {stack.Options{Name: "abc", Aggregator: stack.Aggregator{On: true, Config: "s3://fleet/ratelimit.yaml"}}, nil},
		"config that is a path":  {stack.Options{Name: "abc", Aggregator: stack.Aggregator{On: true, Config: "/opt/ratelimit.yaml"}}, []string{"aggregator.config is"}},
		"config that is many":    {stack.Options{Name: "abc", Aggregator: stack.Aggregator{On: true, Config: "s3://fleet/*"}}, []string{"aggregator.config is"}},
		"config that is none":    {stack.Options{Name: "abc", Aggregator: stack.Aggregator{On: true, Config: "s3://fleet/"}}, []string{"aggregator.config is"}},
		"config of no function":  {stack.Options{Name: "abc", Aggregator: stack.Aggregator{Config: "s3://fleet/ratelimit.yaml"}}, []string{"aggregator.on"}},
		"code without a key":     {stack.Options{Name: "abc", Aggregator: stack.Aggregator{Code: stack.Code{Bucket: "code"}}}, []string{"aggregator.code"}},
		"bucket":                 {stack.Options{Name: "abc", Aggregator: stack.Aggregator{Code: stack.Code{Bucket: "Code", Key: "k"}}}, []string{"aggregator.code.bucket"}},
		"version of no code":     {stack.Options{Name: "abc", Aggregator: stack.Aggregator{Code: stack.Code{Version: "v"}}}, []string{"aggregator.code.version"}},
		"aggregator without IAM": {stack.Options{Name: "abc", IAM: stack.IAM{Off: true}, Aggregator: stack.Aggregator{On: true}}, []string{"aggregator.role_arn"}},
		"aggregator with a role": {stack.Options{Name: "abc", IAM: stack.IAM{Off: true}, Aggregator: stack.Aggregator{On: true, RoleARN: "arn:aws:iam::123456789012:role/service/x"}}, nil},
		"tags of AWS":            {stack.Options{Name: "abc", Tags: map[string]string{"aws:x": ""}}, []string{"reserved"}},
		"tags of the stack":      {stack.Options{Name: "abc", Tags: map[string]string{"Ratelimit:Name": ""}}, []string{"which the stack itself uses"}},
		"tags": {
			stack.Options{Name: "abc", Tags: map[string]string{"": "", "k": strings.Repeat("é", 257), "semi;colon": ""}},
			[]string{`the key ""`, "257 characters", "may have letters"},
		},
		"tags that are right": {stack.Options{Name: "abc", Tags: map[string]string{"Équipe:a/b=c+d-e.f_g@h i": strings.Repeat("é", 256)}}, nil},
	} {
		t.Run(name, func(t *testing.T) { wantProblems(t, test.o, test.want) })
	}
}

// wantProblems demands one problem for each part.
func wantProblems(t *testing.T, o stack.Options, want []string) {
	t.Helper()
	err := o.Check()
	if len(want) == 0 {
		if err != nil {
			t.Errorf("got %v, want nothing", err)
		}
		return
	}
	if !errors.Is(err, stack.ErrInvalid) {
		t.Fatalf("got %v, want ErrInvalid", err)
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != len(want) {
		t.Errorf("got %d problems, want %d:\n%v", len(lines), len(want), err)
	}
	for _, part := range want {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is missing in:\n%v", part, err)
		}
	}
	if _, err := stack.Render(o); err == nil {
		t.Error("Render takes the options")
	}
}

// 46 tags are allowed beside those of the stack.
func TestTagsAreCounted(t *testing.T) {
	o := stack.Options{Name: "abc", Tags: map[string]string{}}
	for i := range 46 {
		o.Tags[fmt.Sprint("k", i)] = "v"
	}
	if err := o.Check(); err != nil {
		t.Error(err)
	}
	o.Tags["more"] = "v"
	wantProblems(t, o, []string{"there are 47; at most 46"})
}

func TestNames(t *testing.T) {
	o := stack.Options{Name: "limits", IAM: stack.IAM{RoleFormat: "pb-{}-eu", PolicyFormat: "{}"}}
	if got := o.RoleName("take-only"); got != "pb-limits-take-only-eu" {
		t.Errorf("role: %q", got)
	}
	if got := o.PolicyName("full"); got != "limits-full" {
		t.Errorf("policy: %q", got)
	}
	if got := (stack.Options{Name: "limits"}).RoleName("full"); got != "" {
		t.Errorf("role without a format: %q", got)
	}
}
