// Package valkeytest starts Valkey or Redis servers for tests.
package valkeytest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/test/kit/proctest"
)

// ProgramVariable is the environment variable with the path of the server's program. Without it tests
// take valkey-server or redis-server, from PATH or from where make has put it.
const ProgramVariable = "RATELIMIT_VALKEY"

// patience is how long a server may take to start or to stop.
const patience = 20 * time.Second

// Server is a server on this machine. It may be killed and started again, on the same port.
type Server struct {
	Address  string // host:port
	Dir      string // where it keeps its files
	Password string // of the user default, for [Server.Do]; "" = none

	tb   testing.TB
	args []string

	mu     sync.Mutex
	cmd    *exec.Cmd
	exited chan struct{}
	output proctest.LogBuffer
}

// Start starts a server with an empty memory, and stops it with the test. args are options beyond those
// of a server for tests, which keeps no files: "--appendonly", "yes". A test with -short is skipped; a
// missing program fails.
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	if testing.Short() {
		tb.Skip("needs a Valkey or Redis server, which -short leaves out")
	}
	s := &Server{Address: proctest.FreeAddress(tb), Dir: tb.TempDir(), tb: tb, args: args}
	if i := slices.Index(args, "--requirepass"); i >= 0 {
		s.Password = args[i+1]
	}
	tb.Cleanup(s.Kill)
	s.Restart()
	return s
}

// Restart starts the server again, after [Server.Kill]. Its files are kept.
func (s *Server) Restart(args ...string) {
	s.tb.Helper()
	_, port, err := net.SplitHostPort(s.Address)
	if err != nil {
		s.tb.Fatal(err)
	}
	s.run(append(append([]string{"--port", port, "--bind", "127.0.0.1", "--dir", s.Dir, "--save", "", "--enable-debug-command", "yes", "--repl-diskless-sync-delay", "0"}, s.args...), args...))
}

// run runs the program with arguments, and waits until the server answers.
func (s *Server) run(args []string) {
	s.tb.Helper()
	s.mu.Lock()
	s.cmd = exec.CommandContext(context.WithoutCancel(s.tb.Context()), program(s.tb), args...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	s.cmd.Stdout, s.cmd.Stderr = &s.output, &s.output
	s.exited = make(chan struct{})
	err := s.cmd.Start()
	cmd, exited := s.cmd, s.exited
	s.mu.Unlock()
	if err != nil {
		s.tb.Fatalf("start a server: %v", err)
	}
	go func() {
		_ = cmd.Wait() // it is killed, always
		close(exited)
	}()
	s.await()
}

// await waits until the server answers.
func (s *Server) await() {
	s.tb.Helper()
	for end := time.Now().Add(patience); ; {
		if _, err := s.Do("PING"); err == nil {
			return
		}
		select {
		case <-s.exited:
			s.tb.Fatalf("the server ended at once; it wrote:\n%s", s.output.String())
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(end) {
			s.tb.Fatalf("the server does not answer after %v", patience)
		}
	}
}

// Kill ends the server at once, as a crash does.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil || s.cmd.Process == nil {
		return
	}
	_ = s.cmd.Process.Signal(syscall.SIGCONT) // it may be stopped; both fail where it has ended
	_ = s.cmd.Process.Kill()
	<-s.exited
}

// Signal sends a signal to the server.
func (s *Server) Signal(sig os.Signal) {
	s.tb.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.tb.Fatal(err)
	}
}

// Must sends a command, and fails the test where its answer is an error.
func (s *Server) Must(words ...string) string {
	s.tb.Helper()
	answer, err := s.Do(words...)
	if err != nil {
		s.tb.Fatalf("%q: %v", words, err)
	}
	return answer
}

// Do sends a command, and returns its answer as the protocol has it.
func (s *Server) Do(words ...string) (string, error) {
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).Dial("tcp", s.Address)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if s.Password != "" {
		if _, err := ask(conn, "AUTH", s.Password); err != nil {
			return "", err
		}
	}
	return ask(conn, words...)
}

// ask sends a command on a connection, and returns its answer.
func ask(conn net.Conn, words ...string) (string, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	if _, err := conn.Write(b.Bytes()); err != nil {
		return "", err
	}
	return readAnswer(conn)
}

// readAnswer reads one simple answer or one text. Of a list it returns the first line.
func readAnswer(conn net.Conn) (string, error) {
	buf := make([]byte, 0, 4096)
	chunk := make([]byte, 64<<10)
	for {
		n, err := conn.Read(chunk)
		if err != nil {
			return "", err
		}
		buf = append(buf, chunk[:n]...)
		line, rest, ok := bytes.Cut(buf, []byte("\r\n"))
		if !ok {
			continue
		}
		switch line[0] {
		case '-':
			return "", fmt.Errorf("%s", line[1:])
		case '$':
			size, err := strconv.Atoi(string(line[1:]))
			if err != nil || size < 0 {
				return "", err
			}
			if len(rest) >= size+2 {
				return string(rest[:size]), nil
			}
		default:
			return string(line[1:]), nil
		}
	}
}

// program returns the path of a server's program.
func program(tb testing.TB) string {
	tb.Helper()
	path := cmp.Or(os.Getenv(ProgramVariable), found())
	if path == "" {
		tb.Fatal("there is no valkey-server and no redis-server; `make tools` installs one")
	}
	return path
}

// found is the path of the program on PATH, or where make has put it; "" = there is none. It is
// looked for once: a test that changes its directory would not find it again.
var found = sync.OnceValue(func() string {
	for _, name := range []string{"valkey-server", "redis-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for root := dir; root != filepath.Dir(root); root = filepath.Dir(root) {
		if path := filepath.Join(root, ".cache", "valkey", "valkey-server"); isFile(path) {
			return path
		}
	}
	return ""
})

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// Follow makes the server a replica of another one. It waits until the server has the state of that
// one, and gets each later write.
func (s *Server) Follow(of *Server) {
	s.tb.Helper()
	host, port, err := net.SplitHostPort(of.Address)
	if err != nil {
		s.tb.Fatal(err)
	}
	_, own, err := net.SplitHostPort(s.Address)
	if err != nil {
		s.tb.Fatal(err)
	}
	s.Must("REPLICAOF", host, port)
	for end := time.Now().Add(patience); !s.follows() || !of.feeds(own); <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			s.tb.Fatal("a replica has not found its primary")
		}
	}
}

// follows reports whether the server has the state of its primary.
func (s *Server) follows() bool {
	s.tb.Helper()
	return strings.Contains(s.Must("INFO", "replication"), "master_link_status:up")
}

// feeds reports whether the server sends each write to its replica at a port. It does so once the replica
// has acknowledged anything.
func (s *Server) feeds(port string) bool {
	s.tb.Helper()
	s.Must("PUBLISH", "valkeytest", "to replicas")
	_, rest, online := strings.Cut(s.Must("INFO", "replication"), "port="+port+",state=online,offset=")
	return online && !strings.HasPrefix(rest, "0,")
}

// Info returns a number of a section of the server's INFO. The name is that of a line, or of a field of
// a line: "used_memory:", "cmdstat_evalsha:calls=". One that is not there is 0.
func (s *Server) Info(section, name string) float64 {
	s.tb.Helper()
	_, rest, ok := strings.Cut("\n"+s.Must("INFO", section), "\n"+name)
	if !ok {
		return 0
	}
	end := strings.IndexFunc(rest, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	n, err := strconv.ParseFloat(rest[:max(end, 0)], 64)
	if err != nil {
		s.tb.Fatalf("INFO %s has no number %s", section, name)
	}
	return n
}

// ProcessorTime returns how long the server has used a processor.
func (s *Server) ProcessorTime() time.Duration {
	s.tb.Helper()
	return time.Duration((s.Info("cpu", "used_cpu_user:") + s.Info("cpu", "used_cpu_sys:")) * float64(time.Second))
}

// Scripts returns how many scripts the server has run.
func (s *Server) Scripts() int {
	s.tb.Helper()
	return int(s.Info("commandstats", "cmdstat_evalsha:calls=") + s.Info("commandstats", "cmdstat_eval:calls="))
}
