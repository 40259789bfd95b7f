package operate_test

import (
	"os"
	"os/user"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// ada is the user of the admin socket in pages.
const ada = "socket:ada"

// asAda returns a text with ada in the place of the user who runs the tests. Tables are as wide as
// with ada.
func asAda(text string) string {
	me := "socket:" + strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil {
		me = "socket:" + u.Username
	}
	if !strings.Contains(text, me) {
		return text
	}
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		at := principals.FindStringIndex(lines[i])
		if at == nil {
			lines[i] = strings.ReplaceAll(lines[i], me, ada)
			continue
		}
		end := i + 1
		for end < len(lines) && inTable(lines[end], at[0]) {
			end++
		}
		renamed(lines[i:end], at[0], at[1], me)
		i = end - 1
	}
	return strings.Join(lines, "\n")
}

// principals is the title of a column of principals, with the space behind it.
var principals = regexp.MustCompile(`\b(PRINCIPAL|BY) {2,}`)

// inTable reports whether a line has a cell that begins at a place.
func inTable(line string, begin int) bool {
	runes := []rune(line)
	return len(runes) > begin && (begin == 0 || runes[begin-1] == ' ') && runes[begin] != ' '
}

// renamed writes the rows of a table, its titles first, with another name in the column from begin
// to end, which gets the width that it then needs.
func renamed(rows []string, begin, end int, me string) {
	cells, width := make([]string, len(rows)), 0
	for i, row := range rows {
		runes := []rune(row)
		cells[i] = strings.ReplaceAll(strings.TrimRight(string(runes[begin:min(end, len(runes))]), " "), me, ada)
		width = max(width, utf8.RuneCountInString(cells[i]))
	}
	for i, row := range rows {
		runes := []rune(row)
		tail := string(runes[min(end, len(runes)):])
		if tail != "" {
			tail = strings.Repeat(" ", width+2-utf8.RuneCountInString(cells[i])) + tail
		}
		rows[i] = string(runes[:begin]) + cells[i] + tail
	}
}

func TestTablesWithAda(t *testing.T) {
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	me := "socket:" + u.Username
	gap := strings.Repeat(" ", len(me)-len("ci")+2)
	text := "TIME  PRINCIPAL" + strings.Repeat(" ", max(len(me)-len("PRINCIPAL"), 0)+2) + "ACTION\nt     " + me + "  put\nt     ci" + gap + "delete\nby " + me + "\n"
	want := "TIME  PRINCIPAL   ACTION\nt     socket:ada  put\nt     ci          delete\nby socket:ada\n"
	if got := asAda(text); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
