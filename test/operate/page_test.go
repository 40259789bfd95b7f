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
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
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
	spaceID   = regexp.MustCompile(`(  |"id": ")[\w-]{11}("|  \d{4}-)`)                                                       // the ID of a namespace
	version   = regexp.MustCompile(`"v[1-9]\d*(\\?)"`)                                                                        // an etag: the stores count differently
	eventID   = regexp.MustCompile(`(Z-)[0-9a-f]{16}\b`)                                                                      // of an audit event: the stores count differently
	uptime    = regexp.MustCompile(`(?m)^(uptime: +)\S+$`)                                                                    // of ratelimit status
	memory    = regexp.MustCompile(`(?m)^(memory: +)\d+`)                                                                     // the same
	leases    = regexp.MustCompile(`(?m)^(leases: +)\d+`)                                                                     // the same
	replicas  = regexp.MustCompile(`(?m)^(replicas: +)\d seen, \d ready$`)                                                    // the same: reports take a while
	hash      = regexp.MustCompile(`(?m)^(configuration: +)[0-9a-f]{12}`)                                                     // of the configuration: the stores differ
	endIn     = regexp.MustCompile(`(?m)^(calls end in: +).*$`)                                                               // of an outage: the stores differ
	denied    = regexp.MustCompile(`(?m)^(ok +Unexpected denial +)most denied in the last minute.*\n.*next: is it meant.*\n`) // the same
	lasting   = regexp.MustCompile(`(replica is ready, for )[0-9hms]+`)                                                       // of ratelimit doctor
	upToDate  = regexp.MustCompile(`(aggregator: +up to date )\d+ s ago`)                                                     // the same
	refilled  = regexp.MustCompile(`\d+\.(00|99)\d(  )?`)                                                                     // of a balance, while the commands ran: in the balance, or in an amount that was booked
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
	for pattern, shown := range map[*regexp.Regexp]string{uptime: "3h12m5s", memory: "64", leases: "2", replicas: "3 seen, 3 ready", hash: "b4b304c5a061", lasting: "3h12m5s", upToDate: "3 s ago"} {
		text = pattern.ReplaceAllString(text, "${1}"+shown)
	}
	text = denied.ReplaceAllString(text, "${1}no limit denied a request of this replica in the last minute\n")
	text = eventID.ReplaceAllString(text, "${1}0000000000000001")
	text = endIn.ReplaceAllString(text, "${1}…")
	text = asAda(text)
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
	pages := []string{filepath.Join("..", "..", "docs", "tour.md"), filepath.Join("..", "..", "docs", "operations.md"), filepath.Join("testdata", "fleet", "more.md")}
	for name, table := range map[string]func(*testing.T) fleetTable{"dynamodb": onDynamoDB, "valkey": onValkey} {
		if *update && name == "valkey" {
			continue // one of them writes the pages
		}
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, table(t), pages...)
			for _, page := range pages {
				t.Run(filepath.Base(page), func(t *testing.T) { f.runPage(t, page) })
			}
		})
	}
}

// The pages for users are true of a service with a data directory, and on a Valkey or Redis server but for
// some words.
func TestOperate(t *testing.T) {
	for _, name := range []string{"operate.md", "manifests.md", "test-rules.md"} {
		page := filepath.Join("..", "..", "docs", name)
		t.Run(name, func(t *testing.T) { runPage(t, page, "", "--data", "data") })
		if !*update {
			t.Run(name+"/valkey", func(t *testing.T) { runPageAs(t, page, serverStore(t), withData) })
		}
	}
}

// Parts of output that a table has, and a data directory has otherwise.
var (
	status  = regexp.MustCompile(`(?m)^(store: +)valkey(, .*)$`)                          // of ratelimit status: the store and its state
	held    = regexp.MustCompile(`(?m)^(leases|replicas): .*\n`)                          // of ratelimit status: only a table has them
	created = regexp.MustCompile(`(?m)  (?:(ID) +|[\w-]{11}  )(?:(CREATED)|\d{4}-\S+Z)$`) // of a namespace, and its ID
	purging = regexp.MustCompile(`(?m)^namespace \S+: \d+ records deleted\n`)             // a line of progress: replicas are waited for
	records = regexp.MustCompile(`purged, \d+ records`)                                   // which are more: indexes and counters
)

// withData returns a text with the words of a data directory.
func withData(text string) string {
	text = records.ReplaceAllString(purging.ReplaceAllString(text, ""), "purged, 2 records")
	text = created.ReplaceAllStringFunc(text, func(end string) string {
		if strings.HasSuffix(end, "CREATED") {
			return "  ID  CREATED"
		}
		return "  -   -"
	})
	return strings.ReplaceAll(held.ReplaceAllString(status.ReplaceAllString(text, "${1}embedded with data"), ""), "the store is available\n", "the store is in the process\n")
}

// asStore returns a text with the name of another store than valkey, whose usage an aggregator counts.
func asStore(text, store string) string {
	if !strings.Contains(text, "embedded with data") { // the tour begins with such a service
		text = strings.ReplaceAll(text, "not needed: the store counts usage with each decision", "up to date 3 s ago")
	}
	return strings.ReplaceAll(status.ReplaceAllString(text, "${1}"+store+"${2}"), "the store valkey is", "the store "+store+" is")
}

// modes are the stores that a page of testdata runs on, by the prefix of its name.
var modes = map[string][]string{
	"":         {"data", "memory", "dynamodb", "valkey"},
	"audit":    {"data", "dynamodb", "valkey"},
	"data":     {"data"},
	"embedded": {"data", "memory"},
	"dynamodb": {"dynamodb", "valkey"},
	"memory":   {"memory"},
	"operate":  {"data", "valkey"}, // of docs/operate.md, which runs on these
	"usage":    {"data", "valkey"}, // in a table of DynamoDB it comes later
	"valkey":   {"valkey"},
}

// Commands have the same output for a service in memory, with a data directory, and on a table.
func TestPages(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("testdata/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range pages {
		prefix, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(page), ".md"), "-")
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
				case "valkey":
					runPage(t, page, serverStore(t))
				}
			})
		}
	}
}

// unhurried is for a table on a busy machine. A late decision is one by an estimate.
const unhurried = "\ndecision: {timeout: 30s}\n"

// runPage is runPageAs with the output as it is.
func runPage(t *testing.T, path, store string, flags ...string) {
	t.Helper()
	runPageAs(t, path, store, func(text string) string { return text }, flags...)
}

// ownStore is the store in a page's configuration.
var ownStore = regexp.MustCompile(`(?m)^store: .*$`)

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
	own := string(config[1])
	if store != "" {
		own = ownStore.ReplaceAllString(own, "")
	}
	s := startService(t, own+unhurried+store, flags...)
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

// serverStore is the configuration of a service on a Valkey or Redis server of its own.
func serverStore(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("store: {type: valkey, valkey: {addresses: [%q], create: true}}\n", valkeytest.Start(t).Address)
}
