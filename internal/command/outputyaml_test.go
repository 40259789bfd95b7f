package command_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/ratelimit/ratelimit/internal/command"
)

// Names may have any characters, as clients choose those of buckets: none of them spoils a list.
func TestYAMLHasAnyCharacter(t *testing.T) {
	for r := rune(0); r <= 0x10ffff; r++ {
		if r > 0x3000 && r < 0xd700 || r > 0x10010 && r < 0x10fff0 { // no others among these
			continue
		}
		want, err := json.Marshal(map[string]string{"id": "a" + string(r) + "b"})
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		var back map[string]string
		err = command.WriteYAML(&text, json.RawMessage(want))
		if err == nil {
			err = yaml.Unmarshal(text.Bytes(), &back)
		}
		if got, _ := json.Marshal(back); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%U: %v, %q", r, err, text.String())
		}
	}
}

// Texts that YAML could read otherwise are read back as they are, as keys and as values.
func TestYAMLKeepsTexts(t *testing.T) {
	for _, text := range []string{"<<", "\n: [?", "\t\n@", "\u202812:30\n", " a", "a\n", "a\nb\n", "a\n\nb", "\n", "", "yes", "1_000", "0x1", "2024-01-01", "12:30:45", "# a", "- a", "*a", "!a", "a: b", "\x1b[2J"} {
		want, err := json.Marshal(map[string]any{"of": []any{text, map[string]any{text: text}}})
		if err != nil {
			t.Fatal(err)
		}
		var written bytes.Buffer
		var back any
		err = command.WriteYAML(&written, json.RawMessage(want))
		if err == nil {
			err = yaml.Unmarshal(written.Bytes(), &back)
		}
		if got, _ := json.Marshal(back); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%q: %v, %q", text, err, written.String())
		}
	}
}
