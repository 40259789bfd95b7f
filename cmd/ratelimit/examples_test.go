package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
)

// The table that is created by examples/dynamodb/table.json is the one that the
// service wants.
func TestExampleOfTheTable(t *testing.T) {
	text, err := os.ReadFile("../../examples/dynamodb/table.json")
	if err != nil {
		t.Fatal(err)
	}
	got := new(dynamodb.CreateTableInput)
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(got); err != nil {
		t.Fatal(err)
	}
	want := dynamo.TableInput(testTable)
	ignore := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".noSmithyDocumentSerde" }, cmp.Ignore())
	if diff := cmp.Diff(want, got, ignore, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestExamplesOfFleets(t *testing.T) {
	for file, want := range map[string]config.StoreType{
		"examples/dynamodb/ratelimit.yaml": config.StoreDynamoDB, "scripts/dashboard/fleet.yaml": config.StoreDynamoDB, "examples/valkey/ratelimit.yaml": config.StoreValkey,
	} {
		cfg, err := config.Load("../../"+file, config.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if cfg.Store.Type != want || len(cfg.Warnings) > 0 {
			t.Errorf("%s: store %s, warnings %v", file, cfg.Store.Type, cfg.Warnings)
		}
	}
}

// The cases of each recipe hold, and its configuration has no warning.
func TestRecipes(t *testing.T) {
	files, err := filepath.Glob("../../examples/recipes/*.cases.yaml")
	if err != nil || len(files) != 9 {
		t.Fatalf("recipes: %v, %v; want nine", files, err)
	}
	for _, file := range files {
		if code, stdout, stderr := output(t, "test", file); code != command.ExitOK {
			t.Errorf("%s: exit code %d\n%s%s", file, code, stdout, stderr)
		}
		recipe := strings.Replace(file, ".cases", "", 1)
		if code, stdout, stderr := output(t, "check", "--strict", "--config", recipe); code != command.ExitOK {
			t.Errorf("%s: exit code %d\n%s%s", recipe, code, stdout, stderr)
		}
	}
}

// The cases of examples/test hold.
func TestExampleOfCases(t *testing.T) {
	if code, stdout, stderr := output(t, "test", "../../examples/test"); code != command.ExitUsage || stdout != "" {
		t.Errorf("a directory with a configuration in it: exit code %d\n%s%s", code, stdout, stderr)
	}
	code, stdout, stderr := output(t, "test", "../../examples/test/cases.yaml")
	if code != command.ExitOK || !strings.Contains(stdout, "5 cases, 0 failed") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	for _, args := range [][]string{{"test"}, {"test", "nowhere"}, {"test", "../../examples/test/cases.yaml", "-o", "xml"}, {"test", "../../examples/test/ratelimit.yaml"}, {"test", "../../examples/test/cases.yaml", "-c", "nowhere"}} {
		if code, _, stderr := output(t, args...); code != command.ExitUsage || stderr == "" {
			t.Errorf("%v: exit code %d\n%s", args, code, stderr)
		}
	}
}
