package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/test/kit/proctest"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

// onServer returns the text of a configuration on a Valkey or Redis server.
func onServer(address, more, rate string) string {
	return fmt.Sprintf("store: {type: valkey, valkey: {addresses: [%q], create: true%s}}\ndecision: {timeout: 10s, on_unavailable: deny}\n", address, more) + withRate(rate)
}

// words returns a text with one space between its words.
func words(text string) string { return strings.Join(strings.Fields(text), " ") }

// Two services on one server share a limit, over both protocols. They report on the server by its own name.
func TestServicesOnOneServer(t *testing.T) {
	server := valkeytest.Start(t)
	file := programtest.WriteFile(t, "c.yaml", onServer(server.Address, "", "4/hour"))
	a, b := start(t, "--config", file), start(t, "--config", file)
	for i, step := range []struct {
		of   *running
		code int
	}{{a, 200}, {b, 200}, {a, 200}} {
		if code, answer := step.of.ask(t, "ada"); code != step.code {
			t.Errorf("request %d: %d, want %d: %+v", i, code, step.code, answer)
		}
	}
	overGRPC := func(of *running) rlsv3.RateLimitResponse_Code {
		answer, err := rlsv3.NewRateLimitServiceClient(programtest.DialPlain(t, of.grpc)).ShouldRateLimit(t.Context(), adasRequest())
		if err != nil {
			t.Fatal(err)
		}
		return answer.GetOverallCode()
	}
	if got := overGRPC(b); got != rlsv3.RateLimitResponse_OK {
		t.Errorf("the last of the limit: %v", got)
	}
	if got := overGRPC(a); got != rlsv3.RateLimitResponse_OVER_LIMIT {
		t.Errorf("over the limit: %v", got)
	}
	for _, r := range []*running{a, b} {
		if code, body := r.get(t, "/readyz"); code != http.StatusOK || !strings.Contains(words(body), `"type": "valkey", "state": "available"`) {
			t.Errorf("/readyz: %d %s", code, body)
		}
		_, text := r.get(t, "/metrics")
		if !strings.Contains(text, "\nratelimit_valkey_clock_trusted 1\n") || strings.Contains(text, "ratelimit_valkey_writes_total 0") {
			t.Error("/metrics does not report on the table")
		}
		if strings.Contains(strings.ToLower(text+r.log.String()), "dynamo") {
			t.Error("metrics or the log name another server")
		}
	}

	code, out, errs := output(t, "backup", "--server", a.adminURL(t), "--output", filepath.Join(t.TempDir(), "x"))
	if code != command.ExitFailure || !strings.Contains(errs, "its table is on a Valkey or Redis server: copy the files of that server") {
		t.Errorf("backup: exit code %d\n%s%s", code, out, errs)
	}

	server.Kill()
	eventually(t, "an outage", func() bool {
		code, _ := a.ask(t, "eve")
		_, body := a.get(t, "/readyz")
		return code == http.StatusTooManyRequests && strings.Contains(words(body), `"type": "valkey", "state": "unavailable"`)
	})
	if !strings.Contains(a.log.String(), outageBegins) || strings.Contains(strings.ToLower(a.log.String()), "dynamo") {
		t.Error("the log does not tell of the outage, or names another server")
	}
}

// A table that the server has lost is made anew where the configuration says so, and is missed otherwise.
func TestAServerThatLosesItsTable(t *testing.T) {
	server := valkeytest.Start(t)
	anew := start(t, "--config", programtest.WriteFile(t, "a.yaml", onServer(server.Address, ", table: anew, on_loss: recreate", "1/hour")))
	missed := start(t, "--config", programtest.WriteFile(t, "b.yaml", onServer(server.Address, ", table: missed", "1/hour")))
	for _, r := range []*running{anew, missed} {
		if code, _ := r.ask(t, "ada"); code != http.StatusOK {
			t.Errorf("the first call: %d", code)
		}
	}
	server.Kill()
	server.Restart()
	eventually(t, "a bucket in a new table", func() bool { code, _ := anew.ask(t, "eve"); return code == http.StatusOK })
	if code, _ := anew.ask(t, "ada"); code != http.StatusTooManyRequests {
		t.Errorf("a bucket that is remembered: %d", code)
	}
	if code, _ := missed.ask(t, "eve"); code != http.StatusTooManyRequests {
		t.Errorf("without a table: %d, want on_unavailable", code)
	}
	eventually(t, "the reason in the status", func() bool {
		missed.ask(t, "eve")
		_, out, _ := output(t, "status", "--server", missed.adminURL(t))
		return strings.Contains(out, "the server of the store has lost the table missed") && strings.Contains(out, "or begin anew with ratelimit valkey create\n")
	})
	if code, out, errs := output(t, "valkey", "create", "--address", server.Address, "--table", "missed"); code != command.ExitOK {
		t.Fatalf("create: exit code %d\n%s%s", code, out, errs)
	}
	if log := missed.log.String(); strings.Contains(strings.ToLower(log), "dynamo") || strings.Contains(log, "stack deploy") {
		t.Errorf("the log names another server:\n%s", log)
	}
	eventually(t, "the table that was made", func() bool { code, _ := missed.ask(t, "zoe"); return code == http.StatusOK })
}

// A service that is started before its server waits for it.
func TestServeBeforeItsServer(t *testing.T) {
	server := valkeytest.Start(t)
	server.Kill()
	log := new(proctest.LogBuffer)
	ctx, cancel := context.WithCancelCause(t.Context())
	code := make(chan int, 1)
	file := programtest.WriteFile(t, "c.yaml", onServer(server.Address, "", "4/hour"))
	go func() {
		code <- run(ctx, []string{"serve", "--config", file, "--grpc-address", "127.0.0.1:0", "--http-address", "127.0.0.1:0"}, log, log)
	}()
	eventually(t, "a word of why it waits", func() bool { return strings.Contains(log.String(), `msg="start delayed" waiting_for="the server"`) })
	server.Restart()
	eventually(t, "the greeting", func() bool { return strings.Contains(log.String(), "answers gRPC on") })
	cancel(command.ErrInterrupted)
	if got := <-code; got != command.ExitOK || strings.Contains(strings.ToLower(log.String()), "dynamo") {
		t.Errorf("exit code %d:\n%s", got, log)
	}
}

// The commands show a server, make its table, and work on it without a service. No output has the password.
func TestValkeyCommands(t *testing.T) {
	server := valkeytest.Start(t)
	server.Must("CONFIG", "SET", "requirepass", "hush-hush")
	t.Chdir(t.TempDir())
	secret := programtest.WriteFile(t, "password", "hush-hush\n")
	file := programtest.WriteFile(t, "c.yaml", fmt.Sprintf("store: {type: valkey, valkey: {addresses: [%q], password_file: %q}}\n%s", server.Address, secret, programtest.TwoPerMinute))
	on := func(code int, want string, args ...string) {
		t.Helper()
		got, stdout, stderr := output(t, args...)
		if got != code || !strings.Contains(stdout+stderr, want) || strings.Contains(stdout+stderr, "hush-hush") {
			t.Errorf("%v: exit code %d, want %d and %q\n%s%s", args, got, code, want, stdout, stderr)
		}
	}
	on(1, "there is no table ratelimit on the server; make it with ratelimit valkey create", "valkey", "check", "--config", file)
	on(1, "maxmemory-policy  noeviction\n", "valkey", "check", "--config", file)
	on(1, "store.valkey: ", "serve", "--config", file)
	on(0, "table ratelimit created\n", "valkey", "create", "--config", file)
	on(0, "table ratelimit exists already\n", "valkey", "create", "--config", file)
	on(0, "ok: the table ratelimit is there\n", "valkey", "check", "--config", file)
	on(1, "there is no table other", "valkey", "check", "--config", file, "--table", "other")
	on(0, "limits of the system created", "set", "limits", "--system", "rpm=5/minute", "--store", "valkey", "--config", file)
	on(0, "rpm", "get", "limits", "--system", "--store", "valkey", "--config", file)
	on(2, "leave them out", "list", "entities", "--store", "valkey", "--config", file, "--region", "r")
	on(1, "NOAUTH", "valkey", "check", "--address", server.Address)
	on(1, "cannot be reached", "valkey", "check", "--address", "127.0.0.1:1")
	on(2, "--address is missing", "valkey", "check")
	on(2, "store.type is embedded", "valkey", "check", "--demo")
	on(2, "store.valkey.addresses: must be hosts and ports", "valkey", "check", "--address", "redis://:hush-hush@h")

	t.Setenv(command.ValkeyPasswordVariable, "hush-hush")
	if err := os.WriteFile(file, []byte(onServer(server.Address, "", "2/hour")), 0o600); err != nil {
		t.Fatal(err)
	}
	on(0, "ok: the table ratelimit is there\n", "valkey", "check", "--config", file)
}

// The page's commands, its file and its user work on a server.
func TestValkeyPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/valkey.md")
	if err != nil {
		t.Fatal(err)
	}
	server := valkeytest.Start(t)
	user := regexp.MustCompile(`(?m)^ACL SETUSER .*$`).FindString(string(text))
	server.Must(strings.Fields(user)...)
	server.Must("CONFIG", "SET", "requirepass", "of the default user")
	_, after, _ := strings.Cut(string(text), "```yaml\n")
	file, _, _ := strings.Cut(after, "```")
	t.Chdir(t.TempDir())
	t.Setenv(command.ValkeyPasswordVariable, "PASSWORD")
	file = strings.Replace(file, `["127.0.0.1:6379"]`, fmt.Sprintf("[%q], username: ratelimit", server.Address), 1)
	if err := os.WriteFile("ratelimit.yaml", []byte(file+"decision: {timeout: 10s}\n"), 0o600); err != nil { // a busy machine
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^ratelimit .*$`).FindAllString(string(text), -1)
	if len(lines) != 3 {
		t.Fatalf("%d commands", len(lines))
	}
	for _, line := range lines {
		words := strings.Fields(line)[1:]
		if words[0] == "serve" {
			r := start(t, words[1:]...)
			if code, answer := r.ask(t, "ada"); code != http.StatusOK || answer.Statuses[0].LimitRemaining != 9 {
				t.Errorf("a call: %d %+v", code, answer)
			}
			continue
		}
		if code, out, errs := output(t, words...); code != command.ExitOK {
			t.Errorf("%s: exit code %d\n%s%s", line, code, out, errs)
		}
	}
	if code, out, errs := output(t, "set", "entity", "a", "--store", "valkey"); code != command.ExitOK {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
}

// guideLines returns the lines of the guide's section about servers: those of the program, and those of
// the server by their first words.
func guideLines(t *testing.T) (program []string, server map[string][]string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## A Valkey or Redis server\n")
	section, _, _ = strings.Cut(section, "\n## ")
	server = make(map[string][]string)
	for _, block := range regexp.MustCompile("(?s)```(sh|text)\n(.*?)```").FindAllStringSubmatch(section, -1) {
		for line := range strings.Lines(block[2]) {
			line = strings.TrimSpace(line)
			if block[1] == "sh" {
				program = append(program, line)
				continue
			}
			words := strings.Fields(line)
			key := strings.Join(words[:min(3, len(words))], " ")
			if words[0] == "ACL" {
				key = line
			}
			server[key] = words
		}
	}
	return program, server
}

// The guide's lines do on a server what the guide says: a bound of memory and files, a backup that is
// restored, a table that is lost, and a password that is replaced, all without a restart of the service.
func TestValkeyGuide(t *testing.T) {
	program, lines := guideLines(t)
	if len(program) != 2 || len(lines) != 7 {
		t.Fatalf("the guide has %q and %v", program, lines)
	}
	server := valkeytest.Start(t)
	say := func(first string) { t.Helper(); server.Must(lines[first]...) }
	server.Must("ACL", "SETUSER", "ratelimit", "on", ">PASSWORD", "~*", "&*", "+@all")
	t.Chdir(t.TempDir())
	secret := programtest.WriteFile(t, "password", "PASSWORD")
	more := fmt.Sprintf(", username: ratelimit, password_file: %q", secret)
	if err := os.WriteFile("ratelimit.yaml", []byte(strings.Replace(onServer(server.Address, more, "2/hour"), ", create: true", "", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	check := func(want int, text string) {
		t.Helper()
		if code, out, errs := output(t, strings.Fields(program[0])[1:]...); code != want || !strings.Contains(out+errs, text) {
			t.Errorf("%s: exit code %d, want %d and %q\n%s%s", program[0], code, want, text, out, errs)
		}
	}
	create := func() {
		t.Helper()
		if code, out, errs := output(t, strings.Fields(program[1])[1:]...); code != command.ExitOK {
			t.Fatalf("%s: exit code %d\n%s%s", program[1], code, out, errs)
		}
	}
	create()
	r := start(t, "--config", "ratelimit.yaml")
	server.Must("CONFIG", "SET", "maxmemory", "1")
	check(command.ExitFailure, "the memory of the server is full")
	say("CONFIG SET maxmemory")
	say("CONFIG SET appendonly")
	say("CONFIG SET appendfsync")
	check(command.ExitOK, "of 8192 MiB")
	check(command.ExitOK, "aof")
	if code, out, errs := output(t, "set", "entity", "kept", "--store", "valkey", "--config", "ratelimit.yaml"); code != command.ExitOK {
		t.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
	eventually(t, "the end of the first rewrite", func() bool { return server.Info("persistence", "aof_rewrite_in_progress:") == 0 })
	say("BGSAVE")
	var backup []byte
	eventually(t, "a backup", func() bool {
		backup, _ = os.ReadFile(filepath.Join(server.Dir, "dump.rdb")) // it has the name when it is whole
		return len(backup) > 0
	})

	server.Must("FLUSHALL")
	check(command.ExitFailure, "there is no table")
	create()
	admits(t, r, "anew")

	restore(t, server, backup)
	say("CONFIG SET appendonly")
	server.Must("ACL", "SETUSER", "ratelimit", "on", ">PASSWORD", "~*", "&*", "+@all") // it has no file of its own here
	check(command.ExitOK, "ok")
	if code, out, _ := output(t, "list", "entities", "--store", "valkey", "--config", "ratelimit.yaml"); code != command.ExitOK || !strings.Contains(out, "kept") {
		t.Errorf("after the restore: exit code %d\n%s", code, out)
	}
	admits(t, r, "restored")

	say("ACL SETUSER ratelimit >NEW")
	if err := os.WriteFile(secret, []byte("NEW"), 0o600); err != nil {
		t.Fatal(err)
	}
	say("ACL SETUSER ratelimit <PASSWORD")
	admits(t, r, "on an open connection")
	server.Must("CLIENT", "KILL", "USER", "ratelimit")
	admits(t, r, "on a new connection")
	check(command.ExitOK, "ok")
}

// admits waits until the service admits a call of a new key by its limit.
func admits(t *testing.T, r *running, key string) {
	t.Helper()
	eventually(t, "a decision "+key, func() bool {
		code, answer := r.ask(t, key)
		return code == http.StatusOK && len(answer.Statuses) == 1
	})
}

// restore starts a server on a backup.
func restore(t *testing.T, server *valkeytest.Server, backup []byte) {
	t.Helper()
	server.Kill()
	if err := os.RemoveAll(filepath.Join(server.Dir, "appendonlydir")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(server.Dir, "dump.rdb"), backup, 0o600); err != nil {
		t.Fatal(err)
	}
	server.Restart("--appendonly", "no")
}

// Both sides of a connection show certificates.
func TestAServerWithTLS(t *testing.T) {
	dir := t.TempDir()
	server, own := programtest.NewIdentity(t, dir, "server"), programtest.NewIdentity(t, dir, "own")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_, port, _ := net.SplitHostPort(address) // it has one
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	valkeytest.Start(t, "--tls-port", port, "--tls-cert-file", server.Cert, "--tls-key-file", server.Key, "--tls-ca-cert-file", own.Cert)
	tls := fmt.Sprintf(", tls: {ca: %q, cert: %q, key: %q}", server.Cert, own.Cert, own.Key)
	if code, out, errs := output(t, "valkey", "create", "--config", programtest.WriteFile(t, "c.yaml", onServer(address, tls, "1/hour"))); code != command.ExitOK {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	if code, _, errs := output(t, "valkey", "check", "--config", programtest.WriteFile(t, "c.yaml", onServer(address, ", tls: {}", "1/hour"))); code != command.ExitFailure || !strings.Contains(errs, "certificate") {
		t.Errorf("another authority: exit code %d, %s", code, errs)
	}
}

// A table is on all primaries of a cluster, whichever server the command is given.
func TestAServerOfACluster(t *testing.T) {
	c := valkeytest.StartCluster(t)
	for _, s := range c.Servers {
		if code, stdout, stderr := output(t, "valkey", "create", "--address", s.Address); code != command.ExitOK {
			t.Fatalf("create: exit code %d\n%s%s", code, stdout, stderr)
		}
		code, stdout, stderr := output(t, "valkey", "check", "--address", s.Address)
		for i, parts := range []string{"5", "6", "5"} {
			if has := "yes: " + parts + " of 16 parts of the table are for the primary at " + c.Servers[i].Address + "\n"; code != command.ExitOK || !strings.Contains(stdout, has) {
				t.Errorf("check: exit code %d, want %s\n%s%s", code, has, stdout, stderr)
			}
		}
	}
	for _, s := range c.Servers[:3] {
		if n := s.Must("DBSIZE"); n == "0" {
			t.Errorf("the server at %s has no key", s.Address)
		}
	}
}

// A server that drops keys when it is full cannot have a table. The command shows it all the same.
func TestAServerThatEvicts(t *testing.T) {
	server := valkeytest.Start(t, "--maxmemory-policy", "allkeys-lru", "--maxmemory", "64mb")
	code, stdout, stderr := output(t, "valkey", "check", "--address", server.Address)
	for _, want := range []string{"maxmemory-policy  allkeys-lru\n", "of 64 MiB\n", "it must be noeviction"} {
		if code != command.ExitFailure || !strings.Contains(stdout+stderr, want) {
			t.Errorf("exit code %d, want %q\n%s%s", code, want, stdout, stderr)
		}
	}
	if code, _, stderr := output(t, "serve", "--demo", "--store", "valkey", "--table", "a b"); code != command.ExitUsage || !strings.Contains(stderr, "store.valkey.table: must be") {
		t.Errorf("a wrong table: exit code %d, %s", code, stderr)
	}
}

// The status of a service that counts no usage says so.
func TestStatusWithoutUsage(t *testing.T) {
	file := programtest.WriteFile(t, "c.yaml", onServer(valkeytest.Start(t).Address, ", usage: false", "2/hour"))
	start(t, "--config", file)
	if _, out, errs := output(t, "status", "--config", file); !strings.Contains(out, "not needed: the store keeps no usage") {
		t.Errorf("%s%s", out, errs)
	}
}

// The server that REDIS_URL names is shared by replicas that start as envoyproxy/ratelimit does, and no line says that
// they share nothing.
func TestReplicasOfRedisURL(t *testing.T) {
	statuses, replicas := onTime(t, func() ([]int, []*drop) {
		server := valkeytest.Start(t)
		server.Must("CONFIG", "SET", "requirepass", "hush-hush")
		variables := map[string]string{
			"RUNTIME_ROOT": ruleFiles(t, map[string]string{"config/a.yaml": oneAnHour("a")}), "REDIS_SOCKET_TYPE": "tcp", "REDIS_TYPE": "SINGLE",
			"REDIS_URL": server.Address, "REDIS_AUTH": "hush-hush", "REDIS_PERSECOND": "true", "REDIS_PERSECOND_URL": "second:6379",
		}
		a, b := startAs(t, variables), startAs(t, variables)
		a.serves()
		b.serves()
		return []int{a.ask("a"), b.ask("a"), a.ask("a")}, []*drop{a, b}
	})
	if !slices.Equal(statuses, []int{200, 429, 429}) {
		t.Errorf("got %v, want one call of an hour", statuses)
	}
	for _, d := range replicas {
		for want, is := range map[string]bool{"using a table of a Valkey or Redis server": true, "names=[REDIS_PERSECOND_URL]": true, "n replicas": false, "hush-hush": false} {
			if strings.Contains(d.log.String(), want) != is {
				t.Errorf("the log has %q: %t\n%s", want, !is, d.log)
			}
		}
	}
}

// The server of limitador's arguments is the store.
func TestLimitadorOnAServer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "limits.yaml")
	if err := os.WriteFile(file, []byte(operatorLimits), 0o600); err != nil {
		t.Fatal(err)
	}
	statuses, _ := onTime(t, func() ([]int, []*drop) {
		server := valkeytest.Start(t)
		args := []string{"limitador-server", "-vv", "--http-ip", "127.0.0.1", "--rls-ip", "127.0.0.1", "--http-port", "0", "--rls-port", "0", file, "redis", "redis://" + server.Address}
		a, b := startAs(t, nil, args...), startAs(t, nil, args...)
		a.serves()
		b.serves()
		var statuses []int
		for _, of := range []*drop{a, b, a, b} {
			status, _ := of.get(of.http, "/check_and_report", chatValues)
			statuses = append(statuses, status)
		}
		return statuses, []*drop{a, b}
	})
	slices.Sort(statuses) // one may have the rest of the limit on lease, so that the other denies
	if !slices.Equal(statuses, []int{200, 200, 429, 429}) {
		t.Errorf("got %v, want two calls of an hour", statuses)
	}
}

// onTime returns the statuses of calls that none of the replicas answered late, which a busy machine makes them do:
// decision.timeout cannot be set where variables or arguments of another program are the configuration.
func onTime(t *testing.T, calls func() ([]int, []*drop)) (statuses []int, replicas []*drop) {
	t.Helper()
	eventually(t, "answers in time", func() bool {
		statuses, replicas = calls()
		return !slices.ContainsFunc(replicas, func(d *drop) bool {
			_, metrics := d.get(d.http, "/metrics", "")
			return regexp.MustCompile(`(?m)^ratelimit_late_decisions_total\{.*\} [1-9]`).MatchString(metrics)
		})
	})
	return statuses, replicas
}
