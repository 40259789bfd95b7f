package stack_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/stack"
)

// cfnLint is where make installs it.
var cfnLint = filepath.Join("..", "..", ".cache", "aws", "bin", "cfn-lint")

// switches are the options, each by what it changes.
func switches() map[string]func(*stack.Options) {
	all := everything()
	return map[string]func(*stack.Options){
		"tags":                func(o *stack.Options) { o.Tags = all.Tags },
		"deletion protection": func(o *stack.Options) { o.DeletionProtection = true },
		"recovery":            func(o *stack.Options) { o.RecoveryDays = 35 },
		"no IAM": func(o *stack.Options) {
			o.IAM = stack.IAM{Off: true}
			o.Aggregator.RoleARN = "arn:aws:iam::123456789012:role/x"
		},
		"roles for ECS":  func(o *stack.Options) { o.IAM.Roles, o.IAM.Trust = !o.IAM.Off, stack.TrustECS },
		"roles for EC2":  func(o *stack.Options) { o.IAM.Roles, o.IAM.Trust = !o.IAM.Off, stack.TrustEC2 },
		"roles for pods": func(o *stack.Options) { o.IAM.Roles, o.IAM.Trust = !o.IAM.Off, stack.TrustPods },
		"roles":          func(o *stack.Options) { o.IAM.Roles = !o.IAM.Off },
		"process": func(o *stack.Options) {
			o.IAM.Process, o.IAM.Roles, o.IAM.ProcessArchive = !o.IAM.Off, !o.IAM.Off, processArchiveIf(!o.IAM.Off)
		},
		"boundary":        func(o *stack.Options) { o.IAM.Boundary = all.IAM.Boundary },
		"boundary by ARN": func(o *stack.Options) { o.IAM.Boundary = "arn:aws:iam::aws:policy/PowerUserAccess" },
		"names": func(o *stack.Options) {
			o.IAM.RoleFormat, o.IAM.PolicyFormat = all.IAM.RoleFormat, all.IAM.PolicyFormat
		},
		"no alarms":  func(o *stack.Options) { o.Alarms.Off = true },
		"alarms":     func(o *stack.Options) { o.Alarms = all.Alarms },
		"aggregator": func(o *stack.Options) { o.Aggregator.On = true },
		"role":       func(o *stack.Options) { o.Aggregator.RoleARN = "arn:aws:iam::123456789012:role/x" },
		"code":       func(o *stack.Options) { o.Aggregator.Code = all.Aggregator.Code },
		"its memory": func(o *stack.Options) { o.Aggregator.MemoryMiB, o.Aggregator.TimeoutSeconds = 3008, 900 },
		"amd64":      func(o *stack.Options) { o.Aggregator.Architecture = stack.ArchAMD64 },
		"tracing":    func(o *stack.Options) { o.Aggregator.Tracing = true },
		"windows":    func(o *stack.Options) { o.Aggregator.Windows = []string{"hour", "month"} },
		"retention": func(o *stack.Options) {
			o.Aggregator.LogDays, o.Aggregator.UsageDays = 3653, 3650
		},
		"no archive": func(o *stack.Options) { o.Aggregator.Archive.Off = true },
		"archive":    func(o *stack.Options) { o.Aggregator.Archive.GlacierDays = 1 },
		"config": func(o *stack.Options) {
			o.Aggregator.On, o.Aggregator.Config = true, all.Aggregator.Config
		},
		"namespaces":       func(o *stack.Options) { o.IAM.Namespaces = namespacesIf(!o.IAM.Off) },
		"a namespace only": func(o *stack.Options) { o.IAM.Namespaces = namespacesIf(!o.IAM.Off)[:0] },
	}
}

func processArchiveIf(on bool) string {
	if !on {
		return ""
	}
	return everything().IAM.ProcessArchive
}

func namespacesIf(on bool) []stack.Namespace {
	if !on {
		return nil
	}
	return everything().IAM.Namespaces
}

// combinations returns option sets: none, all, each option alone and with the aggregator,
// and some at random, the same in every run.
func combinations(t *testing.T) map[string]stack.Options {
	t.Helper()
	all := switches()
	sets := map[string]stack.Options{"none": {Name: "limits"}, "all": everything()}
	for name, set := range all {
		o := stack.Options{Name: "limits"}
		o.Aggregator.On = strings.HasPrefix(name, "no ") || len(name)%2 == 0
		set(&o)
		sets[name] = o
	}
	random := rand.New(rand.NewPCG(1, 2)) // the same in every run
	for i := range 6 {
		o := stack.Options{Name: "limits"}
		for _, name := range []string{
			"no IAM", "deletion protection", "recovery", "roles", "boundary", "names", "no alarms", "alarms", "aggregator", "code",
			"amd64", "tracing", "windows", "retention", "no archive", "config", "namespaces",
		} {
			if random.IntN(2) == 0 {
				all[name](&o)
			}
		}
		sets[fmt.Sprint("random ", i)] = o
	}
	return sets
}

// cfn-lint finds neither an error nor a warning in a template of any options.
func TestTemplatesLint(t *testing.T) {
	if testing.Short() {
		t.Skip("needs cfn-lint, which -short leaves out")
	}
	if _, err := os.Stat(cfnLint); err != nil {
		t.Fatalf("%v; `make tools` installs it", err)
	}
	dir := t.TempDir()
	files := []string{}
	for name, o := range combinations(t) {
		r, err := stack.Render(o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text, err := r.YAML()
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".yaml")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	run := func(files ...string) (string, error) {
		out, err := exec.Command(cfnLint, append([]string{"--non-zero-exit-code", "informational", "--include-checks", "I", "--"}, files...)...).CombinedOutput()
		return string(out), err
	}
	if out, err := run(files...); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	wrong := filepath.Join(dir, "wrong.yaml")
	if err := os.WriteFile(wrong, []byte("Resources: {Table: {Type: AWS::DynamoDB::Table, Properties: {TableNam: x}}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := run(wrong); err == nil || !strings.Contains(out, "TableNam") {
		t.Errorf("a wrong template passes: %v\n%s", err, out)
	}
}
