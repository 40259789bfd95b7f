package command_test

import (
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/internal/command"
)

// Columns of amounts are grouped, and others are not.
func TestTablesGroupAmounts(t *testing.T) {
	type row struct{ name, amount string }
	columns := []command.Column[row]{
		{Title: "ENTITY", Value: func(r row) string { return r.name }},
		{Title: "USED", Amount: true, Value: func(r row) string { return r.amount }},
	}
	var text strings.Builder
	if err := command.WriteTable(&text, false, columns, []row{{"1234567", "1234567"}}); err != nil {
		t.Fatal(err)
	}
	if want := "ENTITY   USED\n1234567  1_234_567\n"; text.String() != want {
		t.Errorf("got %q, want %q", text.String(), want)
	}
}
