//go:build release

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

// choice is a value of an option; nil leaves the default.
type choice func(*stack.Options)

// choices are the values of each option that make a template differ. The first is the default.
func choices() [][]choice {
	all := everything()
	role := func(o *stack.Options) { o.Aggregator.RoleARN = "arn:aws:iam::123456789012:role/x" }
	roles := func(trust stack.Trust) choice {
		return func(o *stack.Options) { o.IAM.Roles, o.IAM.Trust = true, trust }
	}
	return [][]choice{
		{nil, roles(""), roles(stack.TrustECS), roles(stack.TrustEC2), roles(stack.TrustPods), func(o *stack.Options) {
			o.IAM.Roles, o.IAM.Trust = true, stack.TrustIRSA
			o.IAM.Provider, o.IAM.ServiceAccounts = "https://"+issuer, []string{"ratelimit/edge-ratelimit"}
		}, func(o *stack.Options) { o.IAM.Off = true; role(o) }},
		{nil, func(o *stack.Options) { o.Aggregator.On = true }, func(o *stack.Options) {
			o.Aggregator.On, o.Aggregator.Config = true, all.Aggregator.Config
		}},
		{nil, func(o *stack.Options) { o.DeletionProtection = true }, func(o *stack.Options) { o.ExistingTable = true }, func(o *stack.Options) {
			o.ExistingTable, o.StreamARN = true, "arn:aws:dynamodb:eu-central-1:123456789012:table/limits/stream/2026-11-22T20:38:42.002"
		}},
		{nil, func(o *stack.Options) { o.RecoveryDays = 35 }},
		{nil, func(o *stack.Options) { o.IAM.Boundary = all.IAM.Boundary }, func(o *stack.Options) { o.IAM.Boundary = "arn:aws:iam::aws:policy/PowerUserAccess" }},
		{nil, func(o *stack.Options) {
			o.IAM.RoleFormat, o.IAM.PolicyFormat = all.IAM.RoleFormat, all.IAM.PolicyFormat
		}},
		{nil, func(o *stack.Options) { o.IAM.Namespaces = all.IAM.Namespaces }},
		{nil, func(o *stack.Options) { o.IAM.Process = true }, func(o *stack.Options) { o.IAM.Process, o.IAM.ProcessArchive = true, all.IAM.ProcessArchive }},
		{nil, func(o *stack.Options) { o.Alarms = all.Alarms }, func(o *stack.Options) { o.Alarms.Off = true }},
		{nil, role},
		{nil, func(o *stack.Options) { o.Aggregator.Code = all.Aggregator.Code }},
		{nil, func(o *stack.Options) { o.Aggregator.MemoryMiB, o.Aggregator.TimeoutSeconds = 3008, 900 }},
		{nil, func(o *stack.Options) { o.Aggregator.Architecture = stack.ArchAMD64 }},
		{nil, func(o *stack.Options) { o.Aggregator.Tracing = true }},
		{nil, func(o *stack.Options) { o.Aggregator.Windows = []string{"hour", "month"} }},
		{nil, func(o *stack.Options) { o.Aggregator.LogDays, o.Aggregator.UsageDays = 3653, 3650 }},
		{nil, func(o *stack.Options) { o.Aggregator.Archive.GlacierDays = 1 }, func(o *stack.Options) { o.Aggregator.Archive.Off = true }},
	}
}

// pair is two values of two options: their positions in choices.
type pair struct{ option, value, other, with int }

// pairs returns the pairs of a row, which has a value of each option.
func pairs(row []int) []pair {
	var found []pair
	for i := range row {
		for j := range i {
			found = append(found, pair{j, row[j], i, row[i]})
		}
	}
	return found
}

// everyPair returns rows of values so that each value of each option stands in a row with each
// value of every other option. The next row is the one of some random rows with the most new
// pairs. The rows are the same in every run.
func everyPair(options [][]choice) [][]int {
	open := map[pair]bool{}
	for i := range options {
		for j := range i {
			for v := range options[j] {
				for w := range options[i] {
					open[pair{j, v, i, w}] = true
				}
			}
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	var rows [][]int
	for len(open) > 0 {
		var best []int
		most := 0
		for range 200 {
			row, n := make([]int, len(options)), 0
			for i := range row {
				row[i] = random.IntN(len(options[i]))
			}
			for _, p := range pairs(row) {
				if open[p] {
					n++
				}
			}
			if n > most {
				best, most = row, n
			}
		}
		for _, p := range pairs(best) {
			delete(open, p)
		}
		if best != nil {
			rows = append(rows, best)
		}
	}
	return rows
}

// combinations returns option sets by name: none, all, and sets that have every pair of values
// of two options. So each option is there with the aggregator on and off.
func combinations(t *testing.T) map[string]stack.Options {
	t.Helper()
	sets := map[string]stack.Options{"none": {Name: "limits"}, "all": everything()}
	options := choices()
	for n, row := range everyPair(options) {
		o := stack.Options{Name: "limits"}
		for i, value := range row {
			if set := options[i][value]; set != nil {
				set(&o)
			}
		}
		if o.IAM.Off {
			o.IAM = stack.IAM{Off: true} // goes with no other option of IAM
		}
		if o.ExistingTable {
			o.RecoveryDays = 0 // of a table that the stack changes
		}
		sets[fmt.Sprint("pairs ", n)] = o
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
