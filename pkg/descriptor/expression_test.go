package descriptor

import (
	"errors"
	"strings"
	"testing"
)

func celCompilerOf(t *testing.T) *celCompiler {
	t.Helper()
	c, err := newCELCompiler()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func exampleInput() *celInput {
	in := &celInput{Descriptors: []map[string]string{{"a": "1", "auth.user": "al", "n": "x"}, {"b": "2"}}}
	return in.For("free", "")
}

func TestCondition(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text  string
		want  bool
		plain bool // an entry and its value are all of it
	}{
		{`descriptors[0]["a"] == "1"`, true, true},
		{`descriptors[0]['auth.user'] == 'al'`, true, true},
		{`descriptors[0].a == "1"`, true, true},
		{`descriptors[0].a == "2"`, false, true},
		{`descriptors[1].b == "2"`, true, true},
		{`descriptors[0].missing == "1"`, false, true},
		{`descriptors[7].a == "1"`, false, true},
		{`descriptors[0].missing != "1"`, false, false},
		{`descriptors[7].a != "1"`, false, false},
		{`descriptors[0].a != "2"`, true, false},
		{`has(descriptors[0].a) && !has(descriptors[0].c)`, true, false},
		{`"a" in descriptors[0] && descriptors[1].b == "2"`, true, false},
		{`descriptors[0].a.matches("[0-9]+")`, true, false},
		{`descriptors.exists(d, "b" in d && d.b == "2")`, true, false},
		{`limit.name == "free" && limit.id == null`, true, false},
		{`"1" == descriptors[0].a`, true, false},
		{`true`, true, false},
	} {
		e, err := celCompilerOf(t).Condition(test.text)
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		if got, err := e.Test(exampleInput()); err != nil || got != test.want {
			t.Errorf("%s: got %t, %v", test.text, got, err)
		}
		if _, _, plain := e.Wants(); plain != test.plain {
			t.Errorf("%s: plain %t", test.text, plain)
		}
	}
}

func TestVariable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`descriptors[0]["auth.user"]`: "al", `descriptors[1].b`: "2", `descriptors[0].a + "/" + descriptors[1].b`: "1/2", `size(descriptors)`: "2",
		`descriptors[0].a == "1"`: "true", `limit.name`: "free", `limit.id`: "null", `1.5`: "1.5",
	} {
		e, err := celCompilerOf(t).Variable(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := e.Text(exampleInput()); err != nil || got != want {
			t.Errorf("%s: got %q, %v", text, got, err)
		}
	}
	for _, text := range []string{`descriptors[0].missing`, `descriptors[2].a`, `descriptors[0].a + descriptors[0].missing`} {
		e, err := celCompilerOf(t).Variable(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Text(exampleInput()); !errors.Is(err, errMissingEntry) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

// An error of evaluation is none of a missing entry: what a client sends must not switch a limit off.
func TestErrors(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`int(descriptors[0].n) > 3`, `descriptors[0].n.matches("[" + descriptors[0].n)`, `limit.name > 3`} {
		e, err := celCompilerOf(t).Condition(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if _, err := e.Test(exampleInput()); err == nil || errors.Is(err, errMissingEntry) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	c := celCompilerOf(t)
	for text, want := range map[string]string{
		`req_method == "GET"`: "undeclared reference to 'req_method'", `descriptors[0].a ==`: "Syntax error", `"text"`: "must give true or false", ``: "Syntax error",
		`descriptors[0].a == 1`: "no matching overload", `descriptors[0].a.matches("[")`: "error parsing regexp",
	} {
		if _, err := c.Condition(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	if _, err := c.Variable(`descriptors[0]`); err == nil || !strings.Contains(err.Error(), "must give a text or a number") {
		t.Errorf("got %v", err)
	}
}
