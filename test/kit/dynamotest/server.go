package dynamotest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/test/kit/proctest"
)

// patience is how long the server may take to start or to stop; it needs about 2 s
// on a quiet machine.
const patience = time.Minute

// URLVariable is the environment variable with the endpoint of a DynamoDB Local that runs
// already. Tests use that one, and start none.
const URLVariable = "RATELIMIT_DYNAMODB"

// Server is a DynamoDB Local that keeps its tables in memory. Any credentials and
// any region see the same tables, so tests take names from [TableName].
type Server struct {
	URL string // of the endpoint, such as http://127.0.0.1:8000

	cmd    *exec.Cmd
	stdin  io.Closer // closing it ends the server, as does the end of this process
	output proctest.LogBuffer
	exited chan struct{}
}

// shared is the server of this process, with how many tests hold it.
var shared struct {
	mu      sync.Mutex
	server  *Server
	holders int
}

// Main runs the tests of a package and keeps the server between them. TestMain passes
// its result to os.Exit.
func Main(m *testing.M) int {
	hold()
	defer release()
	return m.Run()
}

// Start returns the DynamoDB Local of [URLVariable]. Without one it returns that of this
// process, and starts it for the first test that asks. That one is stopped when the last
// test that holds it, or [Main], is done. A test with -short is skipped; a missing
// installation fails.
func Start(tb testing.TB) *Server {
	tb.Helper()
	if testing.Short() {
		tb.Skip("needs DynamoDB Local, which -short leaves out")
	}
	if url := os.Getenv(URLVariable); url != "" {
		return &Server{URL: url}
	}
	hold()
	tb.Cleanup(release)
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server == nil {
		s, err := Launch(tb.Context())
		if err != nil {
			tb.Fatalf("start DynamoDB Local: %v", err)
		}
		shared.server = s
	}
	return shared.server
}

func hold() {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.holders++
}

func release() {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.holders--
	if shared.holders == 0 && shared.server != nil {
		shared.server.Stop()
		shared.server = nil
	}
}

// supervise runs the server as a child of a shell, which ends when the server does.
// A second one kills it when its input ends, which comes at the latest when the test
// process is gone, however it ended.
const supervise = `exec 3<&0
"$@" </dev/null & server=$!
{ read -r _; kill -9 $server; } <&3 >/dev/null 2>&1 & killer=$!
wait $server; kill $killer 2>/dev/null`

// Launch starts a server and waits until it answers. The caller stops it.
func Launch(ctx context.Context) (*Server, error) {
	jars, err := findJars()
	if err != nil {
		return nil, err
	}
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, fmt.Errorf("DynamoDB Local needs Java 17 or later: %w", err)
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	s := &Server{URL: "http://127.0.0.1:" + port, exited: make(chan struct{})}
	// The server outlives the test that starts it, by minutes at most. In that time the second
	// compiler of Java costs more than it gains.
	s.cmd = exec.CommandContext(context.WithoutCancel(ctx), "sh", "-c", supervise, "sh",
		java, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.library.path="+jars, "-Dsqlite4java.library.path="+jars, "-cp", filepath.Join(jars, "*"),
		"software.amazon.dynamodb.services.local.main.ServerRunner", "-inMemory", "-sharedDb", "-disableTelemetry", "-port", port)
	s.cmd.Dir = jars // where it may leave files
	// Without a bound, Wait waits for the output of a server that outlives the shell: for ever, as
	// what follows the tests of a package is not bounded by the -timeout of go test.
	s.cmd.WaitDelay = patience
	s.cmd.Stdout, s.cmd.Stderr = &s.output, &s.output
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = s.cmd.Wait() // it is killed, always
		close(s.exited)
	}()
	if err := s.ready(ctx); err != nil {
		s.Stop()
		return nil, fmt.Errorf("%w; it wrote:\n%s", err, s.output.String())
	}
	return s, nil
}

// ready waits until the server answers.
func (s *Server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, http.NoBody)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			return response.Body.Close()
		}
		select {
		case <-ticker.C:
		case <-s.exited:
			return errors.New("it ended at once")
		case <-ctx.Done():
			return fmt.Errorf("it does not answer after %v: %w", patience, err)
		}
	}
}

// Stop ends a server that [Launch] has started.
func (s *Server) Stop() {
	_ = s.stdin.Close() // fails only when the server is gone
	select {
	case <-s.exited:
	case <-time.After(patience):
		_ = s.cmd.Process.Kill() // see above
		<-s.exited
	}
}

// findJars returns the folder where make has put DynamoDB Local: .cache/dynamodb
// beside a go.mod. A module of tests inside of another one has none of its own.
func findJars() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	missing := fmt.Errorf("no go.mod above %s", dir)
	for root := dir; ; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			jars := filepath.Join(root, ".cache", "dynamodb")
			found, err := filepath.Glob(filepath.Join(jars, "DynamoDBLocal-*.jar"))
			if err == nil && len(found) > 0 {
				return jars, nil
			}
			missing = fmt.Errorf("%s has no DynamoDBLocal-*.jar; `make tools` installs it", jars)
		}
		if root == filepath.Dir(root) {
			return "", missing
		}
	}
}

// freePort returns a port without a listener at this moment.
func freePort(ctx context.Context) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	return port, errors.Join(err, listener.Close())
}
