package main

import (
	"archive/zip"
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/ratelimit/ratelimit/internal/awscmd"
	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/stack"
)

var motoAddress = regexp.MustCompile(`Running on (http://\S+)`)

// startMoto starts a server that acts as CloudFormation, IAM and DynamoDB, and returns its
// URL. The environment has credentials for it and a region.
func startMoto(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("needs moto, which -short leaves out")
	}
	program := filepath.Join("..", "..", ".cache", "aws", "bin", "python")
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v; `make tools` installs it", err)
	}
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "eu-central-1"} {
		t.Setenv(name, value)
	}
	cmd := exec.CommandContext(t.Context(), program, filepath.Join("testdata", "motoserver.py"), "-H", "127.0.0.1", "-p", "0")
	cmd.Env = append(os.Environ(), "PYTHONUNBUFFERED=1", "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	log := new(strings.Builder)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		log.WriteString(lines.Text() + "\n")
		if found := motoAddress.FindStringSubmatch(lines.Text()); found != nil {
			go func() {
				for lines.Scan() { // its log of requests
				}
			}()
			t.Cleanup(func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait() // it was killed
			})
			return found[1]
		}
	}
	t.Fatalf("moto does not say where it listens: %v\n%s", cmd.Wait(), log)
	return ""
}

// A stack's life by the command line: each command with its exit code and its output.
func TestStackCommands(t *testing.T) {
	url := startMoto(t)
	for _, step := range []struct {
		args           string
		code           int
		stdout, stderr []string // parts
	}{
		{"list", 0, []string{"NAME  HEALTH"}, nil},
		{"status", 1, nil, []string{"stack ratelimit: no such stack in this region and account"}},
		{"deploy --recovery-days 36", 2, nil, []string{"recovery_days is 36; it must be 1 to 35"}},
		{"deploy --tag team=edge --namespace web --roles", 0, []string{
			"TakeOnlyPolicyArn ", "arn:aws:iam::", "TakeOnlyRoleArn ", "TakeOnlyPolicyweb", "TableName  ", "StreamArn",
		}, []string{"CREATE_COMPLETE", "ratelimit (AWS::CloudFormation::Stack)", "UPDATE_COMPLETE"}},
		{"deploy", 1, nil, []string{"stack ratelimit: the stack exists: use update to change it"}},
		{"deploy limits --deletion-protection --no-iam --no-alarms", 0, []string{"TableName  limits"}, []string{"UPDATE_COMPLETE"}},
		{"deploy mine --existing-table", 2, nil, []string{"existing_table: table mine does not exist"}},
		{"list", 0, []string{"limits     healthy  UPDATE_COMPLETE", "ratelimit  healthy  UPDATE_COMPLETE", " 1 "}, nil},
		{"status", 0, []string{"health ", "healthy", "schema version", "1 (this program has 1)", "ACTIVE, answered in ", "deletion protection", "off"}, nil},
		{"status limits", 0, []string{"deletion protection  on"}, nil},
		{"status -o json", 0, []string{`"health": "healthy"`, `"team": "edge"`, `"deletion_protection": false`}, nil},
		{"status -o xml", 2, nil, []string{`--output is "xml"; it must be table, json, yaml`}},
		{"update --namespace web --namespace api", 0, []string{"TakeOnlyPolicyweb", "TakeOnlyPolicyapi"}, []string{"UPDATE_COMPLETE"}},
		{"update --no-tags --tag a=b", 2, nil, []string{"[no-tags tag]"}},
		{"update --no-namespaces --no-tags", 0, []string{"TakeOnlyPolicyArn"}, []string{"UPDATE_COMPLETE"}},
		{"update --aggregator", 2, nil, []string{"aggregator.on needs aggregator.code"}},
		{"update nowhere", 1, nil, []string{"stack nowhere: no such stack"}},
		{"prepare limits --namespace shop", 0, []string{"shop="}, nil},
		{"delete", 2, nil, []string{"say so with --yes"}},
		{"delete limits --yes", 2, nil, []string{"stack limits has deletion protection"}},
		{"delete --yes --keep-data", 2, nil, []string{"stack ratelimit has no deletion protection"}},
		{"delete --yes", 0, []string{"stack ratelimit is deleted\n"}, []string{"DELETE_COMPLETE"}},
		{"list", 0, []string{"limits  healthy"}, nil},
		{"delete limits --yes --keep-data", 0, []string{"stack limits is deleted; left: table limits"}, []string{"DELETE_COMPLETE"}},
		{"deploy limits", 2, nil, []string{"table limits exists, and is of no stack: deploy onto it with existing_table"}},
		{"deploy limits --existing-table --deletion-protection", 2, nil, []string{"deletion_protection and recovery_days must be off"}},
		{"deploy limits --existing-table", 0, []string{"TakeOnlyPolicyArn", "TableName          limits", "StreamArn", "table/limits/stream/"}, []string{"CREATE_COMPLETE"}},
		{"status limits", 0, []string{"ACTIVE, answered in ", "deletion protection  on"}, nil},
		{"update limits --existing-table=false", 2, nil, []string{"existing_table counts at deployment only"}},
		{"update limits --no-alarms", 0, []string{"StreamArn"}, []string{"UPDATE_COMPLETE"}},
		{"delete limits --yes", 0, []string{"left: table limits"}, nil},
		{"deploy limits --existing-table --no-iam", 0, []string{"TableName  limits"}, nil},
	} {
		args := append([]string{"stack"}, strings.Fields(step.args)...)
		code, stdout, stderr := output(t, append(args, "--endpoint", url)...)
		if code != step.code {
			t.Errorf("%s: exit code %d, want %d\n%s", step.args, code, step.code, stderr)
		}
		wantParts(t, step.args, stdout, step.stdout)
		wantParts(t, step.args, stderr, step.stderr)
	}
}

func wantParts(t *testing.T, what, text string, parts []string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s: %q is missing in:\n%s", what, part, text)
		}
	}
}

// putCode puts a file with the code of a function into a bucket.
func putCode(t *testing.T, to *s3.Client, bucket, key string) {
	t.Helper()
	var file bytes.Buffer
	w := zip.NewWriter(&file)
	_, err := w.Create("bootstrap")
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := to.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: bytes.NewReader(file.Bytes())}); err != nil {
		t.Fatal(err)
	}
}

// Every command on stacks of the page succeeds, in the order of the page.
func TestStackPage(t *testing.T) {
	url := startMoto(t)
	text, err := os.ReadFile("../../docs/aws.md")
	if err != nil {
		t.Fatal(err)
	}
	copied := regexp.MustCompile(`(?m)^aws s3 cp (\S+) s3://(\S+)/$`).FindStringSubmatch(string(text))
	if copied == nil {
		t.Fatal("docs/aws.md copies no code of a function")
	}
	putCode(t, newBucket(t, url, copied[2]), copied[2], copied[1])
	t.Chdir(t.TempDir()) // where a template is written
	ran := map[string]bool{}
	for _, line := range regexp.MustCompile(`(?m)^ratelimit stack .*$`).FindAllString(strings.ReplaceAll(string(text), "\\\n", ""), -1) {
		typed, _, _ := strings.Cut(line, " > ")
		args := strings.Fields(typed)[1:]
		if args[1] != "template" {
			args = append(args, "--endpoint", url)
		}
		if code, _, stderr := output(t, args...); code != command.ExitOK {
			t.Errorf("%s: exit code %d\n%s", line, code, stderr)
		}
		ran[args[1]] = true
	}
	for _, typed := range awscmd.NewStack().Commands() {
		if !ran[typed.Name()] {
			t.Errorf("docs/aws.md does not show %s", typed.CommandPath())
		}
	}
}

// The template has every flag's option, and deploy would take it.
func TestStackTemplate(t *testing.T) {
	code, stdout, stderr := output(t, "stack", "template", "limits", "-o", "json",
		"--tag", "team=edge", "--deletion-protection", "--recovery-days", "7",
		"--roles", "--trust", "irsa", "--oidc-provider", "https://oidc.example.com/id/1", "--service-account", "ratelimit/edge-ratelimit", "--permission-boundary", "b", "--role-name-format", "r-{}", "--policy-name-format", "p-{}", "--namespace", "a=b=abcdefghijk", "--aggregate-policy", "--aggregate-archive", "s3://audit-events/audit",
		"--alarm-topic", "arn:aws:sns:eu-central-1:123456789012:pages", "--alarm-throttles", "2", "--alarm-duration-percent", "50", "--alarm-lag-seconds", "60",
		"--aggregator", "--aggregator-code", "s3://code/a/b.zip", "--aggregator-code-version", "v1", "--aggregator-role", "arn:aws:iam::123456789012:role/x",
		"--aggregator-memory", "512", "--aggregator-timeout", "30", "--log-retention-days", "7", "--tracing", "--usage-windows", "hour,month",
		"--usage-retention-days", "400", "--aggregator-architecture", "amd64", "--aggregator-config", "s3://fleet/a.yaml", "--no-archive", "--archive-glacier-days", "10")
	if code != command.ExitOK {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	var got struct {
		Metadata map[string]map[string]stack.Options `json:"Metadata"`
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	o := got.Metadata["Ratelimit"]["Options"]
	if o.IAM.Namespaces[0] != (stack.Namespace{Name: "a=b", ID: "abcdefghijk"}) || o.Aggregator.Code != (stack.Code{Bucket: "code", Key: "a/b.zip", Version: "v1"}) || len(o.Aggregator.Windows) != 2 {
		t.Errorf("got %+v", o)
	}
	if _, existing, _ := output(t, "stack", "template", "limits", "-o", "json", "--existing-table"); !strings.Contains(existing, `"existing_table":true`) {
		t.Errorf("no flag sets existing_table in %s", existing)
	}
	unset := strings.Contains(stdout, `"off":false`) // omitted where it is the default
	text, err := json.Marshal(o)
	if err != nil || unset {
		t.Fatal(err)
	}
	for _, name := range []string{
		"tags", "deletion_protection", "recovery_days", "roles", "trust", "oidc_provider", "service_accounts", "boundary", "process", "process_archive", "role_format", "policy_format", "topic", "throttles", "duration_percent",
		"lag_seconds", "on", "role_arn", "memory_mib", "timeout_seconds", "log_days", "tracing", "usage_days", "architecture", "off", "glacier_days", "config",
	} {
		if !strings.Contains(string(text), `"`+name+`":`) {
			t.Errorf("no flag sets %s in %s", name, text)
		}
	}
	for args, want := range map[string]string{
		"--trust lambda":                               "iam.trust",
		"--aggregator-code code/a.zip":                 "s3://BUCKET/KEY",
		"--no-iam --roles":                             "iam.off",
		"--namespace a --namespace a":                  "twice",
		"--aggregator-code-version abc":                "aggregator.code.version",
		"--aggregator --aggregator-config /opt/c.yaml": "s3://bucket/ratelimit.yaml",
	} {
		if code, _, stderr := output(t, append([]string{"stack", "template"}, strings.Fields(args)...)...); code != command.ExitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d\n%s", args, code, stderr)
		}
	}
}
