package deploy_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
)

// module is the module of Terraform: its files, parsed.
func module(t *testing.T) map[string]*hclsyntax.Body {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "terraform", "*.tf"))
	if err != nil || len(files) < 4 {
		t.Fatalf("files: %v, %v", files, err)
	}
	bodies := map[string]*hclsyntax.Body{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		parsed, problems := hclsyntax.ParseConfig(text, file, hcl.InitialPos)
		if problems.HasErrors() {
			t.Fatal(problems)
		}
		bodies[filepath.Base(file)] = parsed.Body.(*hclsyntax.Body)
		if string(hclwrite.Format(text)) != string(text) {
			t.Errorf("%s is not formatted as terraform fmt would", file)
		}
	}
	return bodies
}

// names returns the addresses of the module's declarations.
func names(bodies map[string]*hclsyntax.Body) map[string]bool {
	all := map[string]bool{}
	for _, body := range bodies {
		for _, block := range body.Blocks {
			switch block.Type {
			case "variable":
				all["var."+block.Labels[0]] = true
			case "resource":
				all[strings.Join(block.Labels, ".")] = true
			case "locals":
				for name := range block.Body.Attributes {
					all["local."+name] = true
				}
			}
		}
	}
	return all
}

// references adds the references in expressions of a body.
func references(all map[string]hcl.Range, body *hclsyntax.Body) {
	for _, attribute := range body.Attributes {
		for _, traversal := range attribute.Expr.Variables() {
			if len(traversal) == 1 {
				continue // the name of a loop
			}
			if step, ok := traversal[1].(hcl.TraverseAttr); ok {
				all[traversal.RootName()+"."+step.Name] = traversal.SourceRange()
			}
		}
	}
	for _, block := range body.Blocks {
		references(all, block.Body)
	}
}

// Every reference leads to a declaration, and every variable and local has a use.
func TestTerraformReferences(t *testing.T) {
	bodies := module(t)
	declared, used := names(bodies), map[string]hcl.Range{}
	for _, body := range bodies {
		for _, block := range body.Blocks {
			found := map[string]hcl.Range{}
			references(found, block.Body)
			if block.Type == "variable" { // its own validation is no use
				delete(found, "var."+block.Labels[0])
			}
			maps.Copy(used, found)
		}
	}
	ofTerraform := []string{"each.key", "each.value", "path.module", "policy.arn", "function.arn", "bucket.bucket", "filter.value", "options.archive", "options.config"} // from policy.arn on, of loops
	for name, where := range used {
		if !declared[name] && !slices.Contains(ofTerraform, name) {
			t.Errorf("%v: %s is not declared", where, name)
		}
	}
	for name := range declared {
		_, is := used[name]
		if resource := strings.HasPrefix(name, "aws_"); !is && !resource { // a resource is there for itself
			t.Errorf("%s is not used", name)
		}
	}
}

// Each template of a policy gives a document of IAM for a table and a namespace.
func TestTerraformPolicies(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "terraform", "policies", "*.tftpl"))
	if err != nil || len(files) != 9 {
		t.Fatalf("templates: %v, %v", files, err)
	}
	const arn, id = "arn:aws:dynamodb:eu-central-1:123456789012:table/limits", "abcdefghijk"
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		expr, problems := hclsyntax.ParseTemplate(text, file, hcl.InitialPos)
		if problems.HasErrors() {
			t.Fatal(problems)
		}
		values := map[string]cty.Value{"table": cty.StringVal(arn)}
		ofAggregator := strings.Contains(filepath.Base(file), "aggregat")
		if ofAggregator {
			for variable, value := range map[string]string{"object": "arn:aws:s3:::fleet/ratelimit.yaml", "stream": arn + "/stream/x", "log": "arn:aws:logs:x", "queue": "arn:aws:sqs:x"} {
				values[variable] = cty.StringVal(value)
			}
		}
		ofNamespace := strings.Contains(file, "-namespace.")
		if ofNamespace {
			values["namespace"] = cty.StringVal(id)
		}
		value, problems := expr.Value(&hcl.EvalContext{Variables: values})
		if problems.HasErrors() {
			t.Fatal(problems)
		}
		var policy struct {
			Version   string `json:"Version"`
			Statement []struct {
				Effect   string   `json:"Effect"`
				Action   []string `json:"Action"`
				Resource []string `json:"Resource"`
			} `json:"Statement"`
		}
		if err := json.Unmarshal([]byte(value.AsString()), &policy); err != nil || policy.Version != "2012-10-17" || len(policy.Statement) < 2 {
			t.Errorf("%s: %v, %+v", file, err, policy)
		}
		for _, s := range policy.Statement {
			if s.Effect != "Allow" || !ofAggregator && (!strings.HasPrefix(s.Resource[0], arn) || !strings.HasPrefix(s.Action[0], "dynamodb:")) {
				t.Errorf("%s: %+v", file, s)
			}
		}
		if ofNamespace != strings.Contains(value.AsString(), id+"/") {
			t.Errorf("%s: names the namespace %v", file, !ofNamespace)
		}
	}
}

// The module names a template for each access, and no other.
func TestTerraformNamesItsPolicies(t *testing.T) {
	text := readFile(t, "terraform", "policies.tf")
	for _, access := range []string{"take-only", "full", "read-only"} {
		if !strings.Contains(text, `"`+access+`"`) {
			t.Errorf("policies.tf lacks %s", access)
		}
		for _, suffix := range []string{"", "-namespace"} {
			if _, err := os.Stat(filepath.Join(root, "terraform", "policies", access+suffix+".json.tftpl")); err != nil {
				t.Error(err)
			}
		}
	}
}
