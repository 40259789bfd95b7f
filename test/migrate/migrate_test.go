package migrate_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/test/envoytest"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
	"github.com/ratelimit/ratelimit/test/kit/pagetest"
	"github.com/ratelimit/ratelimit/test/kit/zaetest"
)

// update has the page rewritten with the output of this run.
var update = flag.Bool("update", false, "write the output of this run into the page")

const page = "../../docs/how-to/migrate-from-zae-limiter.md"

// publicEndpoint is the endpoint that the page writes.
const publicEndpoint = "http://127.0.0.1:8000"

// patience is how long output may take after the end of a command.
const patience = time.Minute

// place is a directory with the program and a configuration.
type place struct{ dir, endpoint string }

// newPlace writes a configuration for a DynamoDB Local. The test has a table of zae-limiter
// there with that many users.
func newPlace(t *testing.T, config, table, version string, users int) *place {
	t.Helper()
	server := dynamotest.Start(t)
	zaetest.MakeTable(t, version, server.URL, table, users)
	p := &place{dir: t.TempDir(), endpoint: server.URL}
	for _, err := range []error{
		os.WriteFile(filepath.Join(p.dir, "ratelimit.yaml"), []byte(strings.ReplaceAll(config, publicEndpoint, server.URL)), 0o600),
		os.Symlink(os.Getenv(envoytest.ProgramVariable), filepath.Join(p.dir, "ratelimit")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func (p *place) command(ctx context.Context, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir, cmd.Env = p.dir, append(os.Environ(), "PATH="+p.dir+":"+os.Getenv("PATH"), "HOME="+p.dir)
	cmd.WaitDelay = patience // what the command started may outlive it
	return cmd
}

// The commands of the page have the output that the page shows.
func TestPage(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, config, _ := strings.Cut(string(text), "```yaml\n")
	config, _, _ = strings.Cut(config, "```")
	p := newPlace(t, config+"domains: [{domain: edge}]\n", "rate-limits", zaetest.Newest, 50)
	pagetest.Check(t, page, *update, func(line string) string {
		out, err := p.command(t.Context(), line).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
		return string(out)
	})
}

// A run that is killed on its way, and made again, has the result of a whole run. A third run
// has nothing to do.
func TestKilled(t *testing.T) {
	const users = 250
	const config = "domains: [{domain: edge}]\nstore: {type: dynamodb, dynamodb: {table: %s, endpoint: %q, create_table: true}}\n"
	p := newPlace(t, fmt.Sprintf(config, "killed", publicEndpoint), "source", "0.10.1", users)
	const run = "exec ratelimit migrate --from source --config ratelimit.yaml --yes"
	made := p.killed(t, run)
	if made == "" {
		t.Fatal("the run ended before it reported its progress")
	}
	again, err := p.command(t.Context(), run).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, again)
	}
	const all = users + 3 + 2 + 1 + 1 + 1 // with acme, acme-key, lonely; limits; the entity of tenant-b
	last, err := p.command(t.Context(), run).CombinedOutput()
	want := fmt.Sprintf("table killed: 0 records to make, %d there already, 0 that differ", all)
	if err != nil || !strings.Contains(string(last), want) {
		t.Errorf("%v; want %s in\n%s", err, want, last)
	}
	if !strings.Contains(string(again), "there already") || strings.Contains(string(again), " 0 there already") {
		t.Errorf("the second run found nothing of the first:\n%s", again)
	}
}

// killed starts a command, and kills it when it first reports its progress. It returns that line.
func (p *place) killed(t *testing.T, line string) string {
	t.Helper()
	cmd := p.command(t.Context(), line)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if done, of, found := strings.Cut(lines.Text(), " of "); found && !strings.ContainsAny(done+of, " :") {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			return lines.Text()
		}
	}
	return ""
}
