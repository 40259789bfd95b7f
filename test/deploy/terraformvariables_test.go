package deploy_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// conditions returns the conditions of a variable's validations.
func conditions(t *testing.T, variable string) (all []hclsyntax.Expression) {
	t.Helper()
	for _, block := range module(t)["variables.tf"].Blocks {
		if block.Type != "variable" || block.Labels[0] != variable {
			continue
		}
		for _, b := range block.Body.Blocks {
			if b.Type == "validation" {
				all = append(all, b.Body.Attributes["condition"].Expr)
			}
		}
	}
	return all
}

// allTrue is alltrue of Terraform.
func allTrue() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "list", Type: cty.DynamicPseudoType}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			for it := args[0].ElementIterator(); it.Next(); {
				if _, v := it.Element(); v.False() {
					return cty.False, nil
				}
			}
			return cty.True, nil
		},
	})
}

// accepted reports whether all conditions of a variable hold for its value.
func accepted(t *testing.T, variable string, value cty.Value) bool {
	t.Helper()
	scope := &hcl.EvalContext{
		Variables: map[string]cty.Value{"var": cty.ObjectVal(map[string]cty.Value{variable: value})},
		Functions: map[string]function.Function{
			"alltrue": allTrue(), "can": tryfunc.CanFunc, "try": tryfunc.TryFunc, "contains": stdlib.ContainsFunc, "keys": stdlib.KeysFunc,
			"length": stdlib.LengthFunc, "regex": stdlib.RegexFunc, "setsubtract": stdlib.SetSubtractFunc, "tonumber": stdlib.MakeToFunc(cty.Number),
			"trimsuffix": stdlib.TrimSuffixFunc, "values": stdlib.ValuesFunc,
		},
	}
	holds := true
	for _, c := range conditions(t, variable) {
		v, problems := c.Value(scope)
		if problems.HasErrors() {
			t.Fatalf("%v: %v", c.Range(), problems)
		}
		holds = holds && v.True()
	}
	return holds
}

// The module refuses a time to keep usage that the program would refuse, before it makes anything.
func TestTerraformKeep(t *testing.T) {
	windows := cty.SetVal([]cty.Value{cty.StringVal("hour"), cty.StringVal("month")})
	for keep, want := range map[string]bool{
		"": true, "hour=24h": true, "hour=720h month=0": true, "hour=23h": false, "month=1h": false, "hour=1d": false, "hour=720": false,
		"hour=-720h": false, "hour=0h": false, "hour=": false, "day=720h": false, "week=720h": false,
	} {
		times := map[string]cty.Value{}
		for of := range strings.FieldsSeq(keep) {
			window, age, _ := strings.Cut(of, "=")
			times[window] = cty.StringVal(age)
		}
		value := map[string]cty.Value{"architecture": cty.StringVal("arm64"), "windows": windows, "keep": cty.MapValEmpty(cty.String)}
		if len(times) > 0 {
			value["keep"] = cty.MapVal(maps.Clone(times))
		}
		if got := accepted(t, "aggregator", cty.ObjectVal(value)); got != want {
			t.Errorf("keep %q: accepted %t, want %t", keep, got, want)
		}
	}
	if !accepted(t, "aggregator", cty.NullVal(cty.DynamicPseudoType)) {
		t.Error("a module without an aggregator is refused")
	}
}
