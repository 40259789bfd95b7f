package operate_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
	"github.com/ratelimit/ratelimit/test/kit/pagetest"
)

// update has the pages rewritten with the output of this run.
var update = flag.Bool("update", false, "write the output of this run into the pages")

// namedBlock is a file of a page, with its name.
var namedBlock = regexp.MustCompile("(?s)`([a-z./-]+)`[^`\n]*:\n\n```(?:yaml|json|sh)\n(.*?)```")

// yamlBlock is a file of configuration in a page.
var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// Parts of output that differ from run to run, and how pages have them.
var (
	timestamp = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	goVersion = regexp.MustCompile(`go1\.[\w.]+ \w+/\w+`)
	spaceID   = regexp.MustCompile(`(  |"id": ")[\w-]{11}("|  \d{4}-)`) // the ID of a namespace
	version   = regexp.MustCompile(`"v[1-9]\d*(\\?)"`)                  // an etag: the stores count differently
	refilled  = regexp.MustCompile(`\d+\.(00|99)\d(  )?`)               // of a balance, while the commands ran: in the balance, or in an amount that was booked
)

// inMemory is the note that changes print for a store in memory, on both streams. memory-changes.md
// shows it. Other pages leave it out, because they are true of every store.
var inMemory = regexp.MustCompile(`(?m)^(note: the store of this service is in memory: .*| *"in_memory": true,|in_memory: true)\n`)

// jsonLine is a line of JSON, in which protojson puts spaces by the build of a program.
var jsonLine = regexp.MustCompile(`(?m)^\{.*\}$`)

// window finds the window of a command whose begin is a midnight.
var window = regexp.MustCompile(`\bwindow[ =](day|month)\b`)

// moment returns the time that pages have in the place of one. A window begins and ends where the
// command's windows do.
func moment(command, text string) string {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.Truncate(24*time.Hour) != at {
		return "2026-11-22T09:00:00Z"
	}
	ends := at.After(time.Now())
	switch w := window.FindStringSubmatch(command); {
	case len(w) == 0 || w[1] == "month" && at.Day() != 1:
		return "2026-11-22T09:00:00Z"
	case w[1] == "month" && ends:
		return "2026-12-01T00:00:00Z"
	case w[1] == "month":
		return "2026-11-01T00:00:00Z"
	case ends:
		return "2026-11-23T00:00:00Z"
	default:
		return "2026-11-22T00:00:00Z"
	}
}

// stable returns the output of a command as pages have it.
func stable(command, text string) string {
	text = jsonLine.ReplaceAllStringFunc(text, func(line string) string {
		var compact bytes.Buffer
		if json.Compact(&compact, []byte(line)) != nil {
			return line
		}
		return compact.String()
	})
	text = timestamp.ReplaceAllStringFunc(text, func(text string) string { return moment(command, text) })
	text = goVersion.ReplaceAllString(text, "go1.26 linux/amd64")
	text = spaceID.ReplaceAllString(text, "${1}AbCdEfGhIjk${2}")
	text = version.ReplaceAllString(text, `"v1$1"`)
	return refilled.ReplaceAllStringFunc(text, func(number string) string {
		whole, rest, _ := strings.Cut(number, ".")
		if strings.HasPrefix(rest, "99") {
			n, _ := strconv.Atoi(whole) // it is digits
			whole = strconv.Itoa(n + 1)
		}
		if strings.HasSuffix(number, " ") { // in a table
			return whole + strings.Repeat(" ", len(number)-len(whole))
		}
		return whole
	})
}

// The pages of a fleet are true of three replicas on one table. They share it: each has entities
// of its own.
func TestGuides(t *testing.T) {
	pages := []string{filepath.Join("..", "..", "docs", "tour.md"), filepath.Join("..", "..", "docs", "operations.md")}
	f := newFleet(t, pages...)
	for _, page := range pages {
		t.Run(filepath.Base(page), func(t *testing.T) { f.runPage(t, page) })
	}
}

// The pages for users are true of a service with a data directory.
func TestOperate(t *testing.T) {
	for _, page := range []string{"operate.md", "manifests.md", "test-rules.md"} {
		t.Run(page, func(t *testing.T) { runPage(t, filepath.Join("..", "..", "docs", page), "", "--data", "data") })
	}
}

// modes are the stores that a page of testdata runs on, by the prefix of its name.
var modes = map[string][]string{
	"":         {"data", "memory", "dynamodb"},
	"data":     {"data"},
	"embedded": {"data", "memory"},
	"dynamodb": {"dynamodb"},
	"memory":   {"memory"},
}

// Commands have the same output for a service in memory, with a data directory, and on a table.
func TestPages(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("testdata/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range pages {
		prefix, _, _ := strings.Cut(filepath.Base(page), "-")
		stores, special := modes[prefix]
		if !special {
			stores = modes[""]
		}
		if *update {
			stores = stores[:1] // one of them writes the page
		}
		for _, store := range stores {
			t.Run(filepath.Base(page)+"/"+store, func(t *testing.T) {
				t.Parallel()
				switch store {
				case "memory":
					runPageAs(t, page, "", func(text string) string {
						if prefix != "memory" {
							text = inMemory.ReplaceAllString(text, "")
						}
						return text
					})
				case "data":
					runPage(t, page, "", "--data", "data")
				case "dynamodb":
					runPage(t, page, tableStore(t))
				}
			})
		}
	}
}

// unhurried is for a DynamoDB Local on a busy machine. A late decision is one by an estimate.
const unhurried = "\ndecision: {timeout: 5s}\n"

// runPage is runPageAs with the output as it is.
func runPage(t *testing.T, path, store string, flags ...string) {
	t.Helper()
	runPageAs(t, path, store, func(text string) string { return text }, flags...)
}

// runPageAs runs the commands of a page one after the other, against a service. Its configuration
// is that of the page, and the store if one is given. shown is the part of the output that is held
// against the page.
func runPageAs(t *testing.T, path, store string, shown func(string) string, flags ...string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	config := yamlBlock.FindSubmatch(text)
	if config == nil {
		t.Fatalf("%s has no configuration", path)
	}
	s := startService(t, string(config[1])+unhurried+store, flags...)
	for _, block := range namedBlock.FindAllStringSubmatch(string(text), -1) {
		s.write(t, block[1], block[2])
	}
	pagetest.Check(t, path, *update, func(command string) string {
		return stable(command, shown(s.run(t, command)))
	})
}

// tableStore is the configuration of a service on a table of its own.
func tableStore(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("store: {type: dynamodb, dynamodb: {table: %q, endpoint: %q, create_table: true}}\n", dynamotest.TableName(t), dynamotest.Start(t).URL)
}
