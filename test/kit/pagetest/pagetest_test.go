package pagetest_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ratelimit/ratelimit/test/kit/pagetest"
)

// failures counts the failures of a test.
type failures struct {
	testing.TB

	n int
}

func (f *failures) Helper()               {}
func (f *failures) Errorf(string, ...any) { f.n++ }

func TestCheck(t *testing.T) {
	const page = "# Page\n\n```console\n$ greet ada\nhello, ada\n```\n\n```sh\n$ greet bob\n```\n"
	path := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	var f failures
	answer := "hello, ada\n"
	run := func(command string) string {
		if command != "greet ada" {
			t.Errorf("ran %q, want the command of the console alone", command)
		}
		return answer
	}
	if pagetest.Check(&f, path, false, run); f.n != 0 {
		t.Error("a page that is true fails")
	}
	answer = "hi, ada\n"
	if pagetest.Check(&f, path, false, run); f.n != 1 {
		t.Errorf("a page that is not true fails %d times, want 1", f.n)
	}
	pagetest.Check(&f, path, true, run)
	if pagetest.Check(&f, path, false, run); f.n != 1 {
		t.Error("a page that was rewritten fails")
	}
}

func TestReadsSettle(t *testing.T) {
	const page = "```console\n$ ratelimit list buckets\n3\n$ ratelimit reset bucket\nreset\n```\n"
	path := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	ran := map[string]int{}
	var f failures
	pagetest.Check(&f, path, false, func(command string) string {
		ran[command]++
		if ran["ratelimit list buckets"] > 2 {
			return "3\n"
		}
		return "2\n"
	})
	if f.n != 1 || ran["ratelimit list buckets"] != 3 || ran["ratelimit reset bucket"] != 1 {
		t.Errorf("%d failures after %v, want a read again until it is as shown, and a change once", f.n, ran)
	}
}

func TestHiddenCommands(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	const page = "Stop it.\n\n<!-- $ stop -->\n\n<!-- a comment -->\n\n```console\n$ greet\ngone\n```\n"
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	answers := map[string]string{"stop": "", "greet": "gone\n"}
	var ran []string
	pagetest.Check(t, path, false, func(command string) string {
		ran = append(ran, command)
		return answers[command]
	})
	if want := []string{"stop", "greet"}; !slices.Equal(ran, want) {
		t.Errorf("ran %q, want %q", ran, want)
	}
	var f failures
	answers["stop"] = "no such service\n"
	if pagetest.Check(&f, path, false, func(command string) string { return answers[command] }); f.n != 1 {
		t.Errorf("a hidden command with output fails %d times, want 1", f.n)
	}
}

func TestCommands(t *testing.T) {
	const page = "```console\n$ greet ada\nhello\nada\n$ part\n```\n$ prose\n\n```sh\n$ greet bob\n```\n"
	want := []pagetest.Command{{Line: "greet ada", Output: "hello\nada\n"}, {Line: "part"}}
	if got := pagetest.Commands(page); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
