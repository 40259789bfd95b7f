package config

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// canary is a secret. No output may have as much as leak bytes of it in a row.
const (
	canary = "c2VjcmV0Y2FuYXJ5/+ZGFuY2luZ2luYW1pbmU5MTM3MjQ2ODE5MDI3MzQ2ODU=="
	number = "91372468190273468501927346850"
	leak   = 6
)

// leaked returns a part of a canary that a text has.
func leaked(text string) string {
	for _, secret := range []string{canary, number} {
		for i := 0; i+leak <= len(secret); i++ {
			if part := secret[i:][:leak]; strings.Contains(text, part) {
				return part
			}
		}
	}
	return ""
}

// confidentialPlaces are the keys at which a secret can stand, on purpose or by mistake. Each has a
// document with VALUE in its place.
func confidentialPlaces() map[string]string {
	places := map[string]string{
		"reservation":      "reservation: VALUE\n",
		"reservation.keys": "reservation: {keys: VALUE}\n",
		"reservation.ttl":  "reservation: {ttl: VALUE}\n",
		"key.file":         "reservation: {keys: [{file: VALUE}]}\n",
		"keys[0]":          "reservation: {keys: [VALUE]}\n",
		"budgets.webhook":  "budgets: {webhook: VALUE}\n",
		"webhook.url":      "budgets: {webhook: {url: VALUE}}\n",
		"webhook.key":      "budgets: {webhook: {url: 'http://a/b', key: VALUE}}\n",
	}
	places["store.valkey"] = "store: {valkey: VALUE}\n"
	for _, key := range []string{"addresses", "username", "password_file", "sentinel_username", "sentinel_password_file", "table", "tls"} {
		places["store.valkey."+key] = "store: {valkey: {" + key + ": VALUE}}\n"
	}
	for _, key := range []string{"ca", "cert", "key", "name"} {
		places["store.valkey.tls."+key] = "store: {valkey: {tls: {" + key + ": VALUE}}}\n"
	}
	for _, listener := range []string{"grpc", "http", "admin"} {
		places["server."+listener+".tls"] = "server: {" + listener + ": {tls: VALUE}}\n"
	}
	for _, key := range []string{"cert", "key", "client_ca", "client_name"} {
		places["tls."+key] = "server: {grpc: {tls: {" + key + ": VALUE}}}\n"
	}
	for _, of := range []string{"xds", "mirror"} {
		places[of+".tls"] = of + ": {address: 'a:1', tls: VALUE}\n"
		for _, key := range []string{"ca", "cert", "key", "name"} {
			places[of+".tls."+key] = of + ": {address: 'a:1', tls: {" + key + ": VALUE}}\n"
		}
	}
	places["server.admin.tokens"] = "server: {admin: {tokens: VALUE}}\n"
	places["server.admin.tokens.*.role"] = "server: {admin: {tokens: {me: {role: VALUE}}}}\n"
	places["server.admin.tokens.*.hash"] = "server: {admin: {tokens: {me: {role: read, hash: VALUE}}}}\n"
	return places
}

// mistakes are values of every kind, most of them wrong at most places. The documents are in flow
// style, so that a value that breaks out of it is a mistake of syntax.
func mistakes() []string {
	var all []string
	for _, form := range []string{
		"C", `"C"`, "'C'", "[C]", "[[C]]", "[[[C]]]", "{C: 1}", "{C: }", "{C}", "{C: C}", "{C: 1, C: 2}", "{keys: C, keys: C}", "{file: C}", "[{file: C}]",
		"{keys: {C: C}}", "{keys: [C, C]}", "{keys: [[C]]}", "{keys: [{C: x}]}", "{keys: [{file: x, C: y}]}", "{keys: [{file: C, file: C}]}", "{keys: [{file: [C]}]}",
		"{ttl: C}", "{cert: C}", "{key: C}", "{cert: C, key: C, client_ca: C}", "{cert: [C]}", "{kye: C}", "{C: {role: read}}", "{me: C}", "{me: {C: x}}", "{me: {role: C}}", "{me: {hash: C}}", "{me: {hash: C, hash: C}}", "{me: [C]}",
		"{<<: C}", "{<<: [C]}", "{<<: {C: 1}}", "{? [C] : x}", "{? {C: C} : x}",
		"*C", "[*C]", "{<<: *C}", "!C x", "!!int C", "!!binary C", "!<C> x", "&C x", "&a C, drain: *a", "&a [C]}, headers: [*a",
		`"C`, "'C", "{C", "[C", "C]", "C}", "C: C", "C: C: C", "@C", "`C", "%C", "|C", ">C", "- C", "? C", "\tC", "\"C\\q\"", "C\n---\nC", "C\n...\nC", "C\x00", "C\xff", "#C",
		"|\n  -----BEGIN PRIVATE KEY-----\n  C\n  -----END PRIVATE KEY-----", "\n- C", "\n  C", "\nC",
	} {
		all = append(all, strings.ReplaceAll(form, "C", canary))
		if !strings.Contains(form, "BEGIN") {
			all = append(all, strings.ReplaceAll(form, "C", number))
		}
	}
	return all
}

func TestSecretsAreNeverRepeated(t *testing.T) {
	refused := 0
	try := func(what, document string) {
		c, err := Parse("ratelimit.yaml", []byte(document), fstest.MapFS{})
		if err != nil {
			refused++
			if part := leaked(err.Error()); part != "" {
				t.Errorf("%s: %q is repeated by the error\n%s\nof\n%s", what, part, err, document)
			}
			return
		}
		if part := leaked(c.Warnings.Error()); part != "" {
			t.Errorf("%s: %q is repeated by the warnings\n%s", what, part, c.Warnings)
		}
	}
	for place, document := range confidentialPlaces() {
		for _, value := range mistakes() {
			try(place, strings.ReplaceAll(document, "VALUE", value)+"domains: [{domain: d}]\n")
			block := strings.NewReplacer(": {", ":\n  ", "}", "").Replace(document) // as most files are written
			try(place, strings.ReplaceAll(block, "VALUE", value)+"domains: [{domain: d}]\n")
		}
	}
	if refused < 500 {
		t.Errorf("only %d documents were refused: most should be", refused)
	}
}

// A file that is named by mistake may have any content.
func TestFilesThatAreNoneAreNotRepeated(t *testing.T) {
	dir := t.TempDir()
	main, other := filepath.Join(dir, "ratelimit.yaml"), filepath.Join(dir, "other")
	for _, text := range []string{
		canary, canary + "\n", number, `"` + canary + `"`, "- " + canary, "[" + canary + "]", "{" + canary, "*" + canary, canary + "\n" + canary,
		"root:" + canary + ":0:0:root:/root:/bin/bash\n" + canary + ":x:1:1::/:/bin/sh\n",
		"-----BEGIN PRIVATE KEY-----\n" + canary + "\n-----END PRIVATE KEY-----\n",
		"TOKEN=" + canary + "\n", "user:$apr1$" + canary + "\n", "data: {token: " + canary + "}\nkind: Secret\n", `{"private_key": "` + canary + `"}`,
	} {
		for path, document := range map[string]string{main: "include: [{path: other}]\ndomains: [{domain: d}]\n", other: ""} {
			if err := os.WriteFile(main, []byte(document), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(other, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Load(path, Options{})
			if err == nil {
				t.Errorf("%q is taken for a configuration", text)
				continue
			}
			if part := leaked(err.Error()); part != "" {
				t.Errorf("%q is repeated by the error %s\nof %s", part, err, text)
			}
		}
	}
}

// TestConfidentialPlacesAreComplete finds keys whose names look like those of secrets and for which
// confidentialPlaces has no document.
func TestConfidentialPlacesAreComplete(t *testing.T) {
	secret := regexp.MustCompile(`^(reservation|webhook|.*\b(tls|webhook|keys?|tokens?|secrets?|(sentinel_)?passwords?(_file)?|credentials?|client_ca)|(tls|key|token|webhook)\..*)(\..*|$)`)
	places := confidentialPlaces()
	found := 0
	for _, key := range schemaKeys() {
		if !secret.MatchString(key) || slices.Contains([]string{"descriptor.key", "headers.openai.tokens"}, key) { // the key of an entry, the name of a limit
			continue
		}
		found++
		if _, ok := places[key]; !ok {
			t.Errorf("%s may hold a secret: confidentialPlaces needs a document with it", key)
		}
	}
	if found < 7 {
		t.Errorf("found only %d keys of secrets", found)
	}
}

// A URL may have a user with a password.
func TestPasswordInEndpoint(t *testing.T) {
	_, err := Parse("f.yaml", fmt.Appendf(nil, "store: {type: dynamodb, dynamodb: {endpoint: 'http://me:%s@localhost:8000'}}", canary), nil)
	if err == nil || leaked(err.Error()) != "" {
		t.Errorf("got %v", err)
	}
}
