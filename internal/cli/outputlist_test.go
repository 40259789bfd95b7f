package cli

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/api"
)

// numbered yields n entities. before is called with the number of each one first.
func numbered(n int, before func(i int)) iter.Seq2[api.Entity, error] {
	return func(yield func(api.Entity, error) bool) {
		for i := range n {
			if before != nil {
				before(i)
			}
			if !yield(api.Entity{ID: api.Name(fmt.Sprintf("key/%d", i)), Name: strings.Repeat("<é>", i%7), Metadata: map[string]string{"a": "b"}}, nil) {
				return
			}
		}
	}
}

// A list of any length is written as if it were written at once.
func TestListsAsOne(t *testing.T) {
	for _, n := range []int{0, 1, listBlock - 1, listBlock, listBlock + 1, 3 * listBlock} {
		for _, form := range command.Outputs() {
			list := api.List[api.Entity]{Items: []api.Entity{}}
			for v, err := range numbered(n, nil) {
				if err != nil {
					t.Fatal(err)
				}
				list.Items = append(list.Items, v)
			}
			var got, want bytes.Buffer
			err := errors.Join(
				writeList(&operator{output: form}, &got, 0, entityColumns(), numbered(n, nil)),
				command.WriteOne(&want, form, entityColumns(), list.Items, list))
			short := got.String()
			if form == command.OutputTable || form == command.OutputWide { // later blocks can be wider
				short, want = strings.Join(strings.Fields(short), " "), *bytes.NewBufferString(strings.Join(strings.Fields(want.String()), " "))
			}
			if err != nil || short != want.String() {
				t.Errorf("%d items as %s: %v; got\n%s\nwant\n%s", n, form, err, short, want.String())
			}
			if n <= listBlock && n > 0 && form == command.OutputTable && !strings.Contains(got.String(), "\nkey/0") {
				t.Errorf("%d items: %s", n, got.String())
			}
		}
	}
}

// A block is written before the next one is asked for, and in columns.
func TestListsAreStreamed(t *testing.T) {
	for _, form := range command.Outputs() {
		var out bytes.Buffer
		err := writeList(&operator{output: form}, &out, 0, entityColumns(), numbered(3*listBlock, func(i int) {
			if i > 0 && i%listBlock == 0 && !strings.Contains(out.String(), fmt.Sprintf("key/%d", i-1)) {
				t.Errorf("%s: item %d is asked for, and the one before is not written", form, i)
			}
		}))
		if err != nil {
			t.Error(err)
		}
	}
	var out bytes.Buffer
	if err := writeList(&operator{output: command.OutputTable}, &out, 150, entityColumns(), numbered(1000, nil)); err != nil {
		t.Error(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 151 || strings.Index(lines[1], "false") != strings.Index(lines[100], "false") || !strings.HasPrefix(lines[0], "ID") {
		t.Errorf("%d lines:\n%s", len(lines), out.String())
	}
}

// A list that is cut off says so.
func TestListsThatAreCutOff(t *testing.T) {
	for _, n := range []int{0, listBlock} {
		var out bytes.Buffer
		err := writeList(&operator{output: command.OutputJSON}, &out, 0, entityColumns(), func(yield func(api.Entity, error) bool) {
			for v, err := range numbered(n, nil) {
				if !yield(v, err) {
					return
				}
			}
			yield(api.Entity{}, errors.New("the service stopped"))
		})
		if err == nil || strings.Contains(err.Error(), fmt.Sprintf("ends after %d items", n)) != (n > 0) {
			t.Errorf("after %d items: %v", n, err)
		}
	}
}
