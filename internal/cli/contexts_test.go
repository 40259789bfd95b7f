package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// A saved context comes back, and the user alone can read its file.
func TestSave(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "contexts.yaml")
	f, err := readContexts(path)
	if err != nil || len(f.Contexts) != 0 {
		t.Fatalf("a file that does not exist: %+v, %v", f, err)
	}
	f.Current = "prod"
	f.Contexts["prod"] = namedContext{Server: "https://rl:8082", Namespace: "n", CA: "/ca", Cert: "/c", Key: "/k", TokenFile: "/t"}
	f.Contexts["here"] = namedContext{Server: "unix:///run/a.sock", TokenEnv: "T"}
	for range 2 { // the second one replaces the first
		if err := f.Save(); err != nil {
			t.Fatal(err)
		}
	}
	got, err := readContexts(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f, got, cmpopts.IgnoreUnexported(contextsFile{})); diff != "" {
		t.Error(diff)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("files: %v", entries)
	}
	if err := os.Chmod(path, 0o620); err != nil {
		t.Fatal(err)
	}
	if _, err := readContexts(path); err == nil || !strings.Contains(err.Error(), "can be written by others") {
		t.Errorf("a file that others can write: %v", err)
	}
}

func TestMistakes(t *testing.T) {
	for file, want := range map[string]string{
		"contexts: {a: {sever: x}}":                                         `c.yaml:1: contexts.a.sever: unknown key "sever"; did you mean "server"?`,
		"contexts: {a: {}}":                                                 `c.yaml:1: contexts.a: server is ""; it must be unix:///PATH or https://HOST:PORT`,
		"contexts: {a: {server: localhost:80}}":                             `server is "localhost:80"; it must be`,
		"contexts: {a: {server: 'https://u:p@h'}}":                          `server has a password in it: name a token`,
		"contexts: {a: {server: 'unix:a'}}":                                 `server is "unix:a"; it must be`,
		"contexts: {a: {server: 'https://h', cert: x}}":                     `cert and key belong together`,
		"contexts: {a: {server: 'https://h', token_file: x, token_env: y}}": `token_file or token_env, not both`,
		"contexts: {'a b': {server: 'https://h'}}":                          `the name of a context is "a b"`,
		"contexts: [": `not valid YAML`,
	} {
		path := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		if f, err := readContexts(path); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "u:p") {
			t.Errorf("%s: %+v, %v; want %s", file, f, err, want)
		}
	}
}

func TestFind(t *testing.T) {
	f := &contextsFile{Contexts: map[string]namedContext{"staging": {Server: "https://s"}, "prod": {Server: "https://p"}}}
	if c, err := f.Find("prod"); err != nil || c.Server != "https://p" {
		t.Errorf("%+v, %v", c, err)
	}
	for name, want := range map[string]string{"stagin": `did you mean "staging"?`, "xxxxxx": "there are prod, staging"} {
		if _, err := f.Find(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}
