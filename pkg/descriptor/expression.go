package descriptor

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// maxCELCost bounds the work for one evaluation, in units of CEL. One that needs more fails.
const maxCELCost = 1_000_000

// errMissingEntry says that a call lacks a descriptor or an entry that the expression needs.
var errMissingEntry = errors.New("the call lacks an entry")

// celCompiler compiles expressions. Create it with [newCELCompiler].
type celCompiler struct{ env *cel.Env }

// newCELCompiler returns a compiler.
func newCELCompiler() (*celCompiler, error) {
	env, err := cel.NewEnv(
		cel.Variable("descriptors", cel.ListType(cel.MapType(cel.StringType, cel.StringType))),
		cel.Variable("limit", cel.MapType(cel.StringType, cel.DynType)),
	)
	return &celCompiler{env}, err
}

// celExpression is a compiled condition or variable of a limit of a limitador file: an expression of CEL, the Common
// Expression Language (https://cel.dev), over the descriptors of a call.
//
// It sees descriptors, a list with a map of text to text for each descriptor. It also sees limit, a map with the
// name and the id of the limit. Of an entry that a descriptor has twice, the last one counts. It is safe for
// concurrent use.
type celExpression struct {
	text    string
	program cel.Program
	entry   celEntry // that it reads, if it is no more than that; Key "" = it is more
	equals  string   // of a condition: the value that the entry must have
}

// celEntry is an entry of a descriptor.
type celEntry struct {
	Descriptor int // index in the call
	Key        string
}

// Condition compiles an expression that is true or false.
func (c *celCompiler) Condition(text string) (*celExpression, error) {
	e, root, err := c.compile(text, func(t *cel.Type) bool { return t.IsExactType(cel.BoolType) || t.IsExactType(cel.DynType) }, "true or false")
	if err != nil {
		return nil, err
	}
	if root.Kind() == ast.CallKind && root.AsCall().FunctionName() == "_==_" {
		left, right := root.AsCall().Args()[0], root.AsCall().Args()[1]
		if value, ok := celConstant(right).(string); ok {
			e.entry, e.equals = entryOf(left), value
		}
	}
	return e, nil
}

// Variable compiles an expression that gives text, a number, true, false or null.
func (c *celCompiler) Variable(text string) (*celExpression, error) {
	scalar := func(t *cel.Type) bool {
		scalars := []*cel.Type{cel.StringType, cel.IntType, cel.UintType, cel.DoubleType, cel.BoolType, cel.NullType, cel.DynType}
		return slices.ContainsFunc(scalars, t.IsExactType)
	}
	e, root, err := c.compile(text, scalar, "a text or a number")
	if err != nil {
		return nil, err
	}
	e.entry = entryOf(root)
	return e, nil
}

func (c *celCompiler) compile(text string, fits func(*cel.Type) bool, want string) (*celExpression, ast.Expr, error) {
	compiled, issues := c.env.Compile(text)
	if err := issues.Err(); err != nil {
		return nil, nil, fmt.Errorf("is no expression of CEL: %s", oneLine(err.Error()))
	}
	if !fits(compiled.OutputType()) {
		return nil, nil, fmt.Errorf("gives %s; it must give %s", compiled.OutputType(), want)
	}
	program, err := c.env.Program(compiled, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(maxCELCost))
	if err != nil {
		return nil, nil, err
	}
	return &celExpression{text: text, program: program}, compiled.NativeRep().Expr(), nil
}

// oneLine returns the first line of the report of a mistake, which has a picture of the place below it.
func oneLine(report string) string {
	line, _, _ := strings.Cut(report, "\n")
	return strings.TrimPrefix(line, "ERROR: <input>:")
}

// entryOf returns the entry that an expression reads: descriptors[N]["KEY"] or descriptors[N].KEY.
func entryOf(e ast.Expr) celEntry {
	var of ast.Expr
	key := ""
	if e.Kind() == ast.SelectKind && !e.AsSelect().IsTestOnly() {
		of, key = e.AsSelect().Operand(), e.AsSelect().FieldName()
	} else if of = indexed(e); of != nil {
		key, _ = celConstant(e.AsCall().Args()[1]).(string)
	}
	list := ast.Expr(nil)
	if of != nil {
		list = indexed(of)
	}
	if list == nil || list.Kind() != ast.IdentKind || list.AsIdent() != "descriptors" {
		return celEntry{}
	}
	index, ok := celConstant(of.AsCall().Args()[1]).(int64)
	const most = 1 << 10 // far above what a call has
	if !ok || index < 0 || index > most {
		return celEntry{}
	}
	return celEntry{Descriptor: int(index), Key: key}
}

// indexed returns the operand of an index expression; nil when it is none.
func indexed(e ast.Expr) ast.Expr {
	if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != "_[_]" {
		return nil
	}
	return e.AsCall().Args()[0]
}

// celConstant returns the value of a literal; nil when the expression is none.
func celConstant(e ast.Expr) any {
	if e.Kind() != ast.LiteralKind {
		return nil
	}
	return e.AsLiteral().Value()
}

// String returns the expression as it is written.
func (e *celExpression) String() string { return e.text }

// Wants returns, of a condition, the entry and the value that it must have, and whether that is all of the condition.
func (e *celExpression) Wants() (entry celEntry, value string, ok bool) {
	return e.entry, e.equals, e.entry.Key != ""
}

// celInput is the descriptors of a call.
type celInput struct {
	Descriptors []map[string]string
	vars        map[string]any
}

// For returns the input for the expressions of a limit.
func (in *celInput) For(name, id string) *celInput {
	return &celInput{Descriptors: in.Descriptors, vars: map[string]any{"descriptors": in.Descriptors, "limit": map[string]any{"name": orNull(name), "id": orNull(id)}}}
}

func orNull(text string) any {
	if text == "" {
		return types.NullValue
	}
	return text
}

// find returns the value of an entry.
func (in *celInput) find(e celEntry) (string, error) {
	if e.Descriptor < len(in.Descriptors) {
		if value, ok := in.Descriptors[e.Descriptor][e.Key]; ok {
			return value, nil
		}
	}
	return "", errMissingEntry
}

// Test evaluates a condition. It is false where the call lacks an entry.
func (e *celExpression) Test(in *celInput) (bool, error) {
	if e.entry.Key != "" {
		value, err := in.find(e.entry)
		return err == nil && value == e.equals, nil
	}
	value, err := e.eval(in)
	switch result, ok := value.(types.Bool); {
	case errors.Is(err, errMissingEntry):
		return false, nil
	case err != nil:
		return false, err
	case !ok:
		return false, fmt.Errorf("%s gives %s, not true or false", e.text, value.Type().TypeName())
	default:
		return bool(result), nil
	}
}

// Text evaluates a variable. The error is [errMissingEntry] where the call lacks an entry.
func (e *celExpression) Text(in *celInput) (string, error) {
	if e.entry.Key != "" {
		return in.find(e.entry)
	}
	value, err := e.eval(in)
	if err != nil {
		return "", err
	}
	switch value.Type() {
	case types.StringType, types.IntType, types.UintType, types.DoubleType, types.BoolType, types.NullType:
		text, ok := value.ConvertToType(types.StringType).(types.String)
		if value.Type() == types.NullType {
			text, ok = "null", true
		}
		if ok {
			return string(text), nil
		}
	}
	return "", fmt.Errorf("%s gives %s, not a text or a number", e.text, value.Type().TypeName())
}

func (e *celExpression) eval(in *celInput) (ref.Val, error) {
	value, _, err := e.program.Eval(in.vars)
	if err == nil {
		return value, nil
	}
	// The library has no type for these two.
	for _, missing := range []string{"no such key", "index out of bounds"} {
		if strings.HasPrefix(err.Error(), missing) {
			return nil, errMissingEntry
		}
	}
	return nil, fmt.Errorf("%s: %w", e.text, err)
}
