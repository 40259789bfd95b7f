package valkey_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/limiter/storetest"
	"github.com/ratelimit/ratelimit/pkg/valkey"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

const (
	adminPassword = "of-the-administrator"
	userName      = "ratelimit"
)

// userRules are the rules of the user that the store needs, without its password: ACL SETUSER ratelimit
// on >password and these. The keys are those of all tables here; those of one are ~{name}:*.
const userRules = "~{*}:* resetchannels -@all +ping +info +time +evalsha +eval +script|load +get +set +exists +del " +
	"+hgetall +hget +hmget +hset +hdel +zadd +zrem +zrangebylex +zrevrangebylex +zrangebyscore"

// withUser starts a server with the user that the store needs.
func withUser(t *testing.T, rules string, options ...string) *valkeytest.Server {
	t.Helper()
	server := valkeytest.Start(t, append([]string{"--requirepass", adminPassword}, options...)...)
	server.Must(append([]string{"ACL", "SETUSER", userName, "on", ">first"}, strings.Fields(rules)...)...)
	return server
}

func asUser(cfg *valkey.Config) {
	cfg.Connection.Login = valkey.Login{User: userName, Password: "first"}
}

// The user has what the store needs, and no more. TestConformanceWithLeases runs as that user, too.
func TestUser(t *testing.T) {
	server := withUser(t, userRules)
	storetest.RunControl(t, func(t *testing.T) storetest.ControlStore { return onServer(t, server, asUser) })
	storetest.RunBuckets(t, func(t *testing.T) storetest.BucketStore { return onServer(t, server, asUser) })
	s := onServer(t, server, asUser)
	defer func() { _ = s.Close(t.Context()) }()
	if _, err := s.Servers(t.Context()); err != nil {
		t.Errorf("Server: %v", err)
	}
	leases := func(cfg *valkey.Config) {
		asUser(cfg)
		cfg.Leases = true
	}
	under(t, server.Address, leases, func(*load) {}) // sweeps, too
	if n := server.Must("ACL", "LOG"); n != "0" {
		t.Errorf("the server has refused %s kinds of calls of the user", n)
	}
	checkUsed(t, server, userRules)
}

// checkUsed checks that every command of the rules was used.
func checkUsed(t *testing.T, server *valkeytest.Server, rules string) {
	t.Helper()
	used := server.Must("INFO", "commandstats")
	for rule := range strings.FieldsSeq(rules) {
		if name, ok := strings.CutPrefix(rule, "+"); ok && !strings.Contains(used, "cmdstat_"+name+":") {
			t.Errorf("nothing needs %s", rule)
		}
	}
}

// A password that is changed while the store runs is read at the next connection.
func TestPasswordChange(t *testing.T) {
	t.Parallel()
	server := withUser(t, userRules)
	file := filepath.Join(t.TempDir(), "password")
	write := func(password string) {
		if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	change := func(cfg *valkey.Config) {
		cfg.Connection.Login = valkey.Login{User: userName, PasswordFile: file}
	}
	l, over := under(t, server.Address, change, func(l *load) {
		server.Must("ACL", "SETUSER", userName, "resetpass", ">second")
		write("second")
		server.Must("CLIENT", "KILL", "USER", userName)
	})
	if over > 0 {
		t.Errorf("%d tokens too many", over)
	}
	if cause := l.failure.Load(); cause != nil {
		t.Logf("%d calls failed, with %v", l.failed.Load(), *cause)
	}
}

// A wrong password is an error that says so, and does not tell it.
func TestWrongPassword(t *testing.T) {
	server := withUser(t, userRules)
	for name, login := range map[string]valkey.Login{
		"wrong": {User: userName, Password: "hush"}, "of nobody": {User: "nobody", Password: "hush"}, "none": {},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := valkey.Open(t.Context(), configOf(t, server, func(cfg *valkey.Config) { cfg.Connection.Login = login }))
			if !errors.Is(err, limiter.ErrUnavailable) || strings.Contains(err.Error(), "hush") {
				t.Errorf("Open: %v", err)
			}
			t.Log(err)
		})
	}
}

// A user without a permission fails at the start, with an error that names the command. Nothing is written.
func TestUserWithoutAPermission(t *testing.T) {
	server := withUser(t, "")
	for rule := range strings.FieldsSeq(userRules) {
		name, ok := strings.CutPrefix(rule, "+")
		if !ok || name == "ping" {
			continue
		}
		server.Must("FLUSHALL")
		server.Must(append([]string{"ACL", "SETUSER", userName, "reset", "on", ">first"}, slices.DeleteFunc(strings.Fields(userRules), func(s string) bool { return s == rule })...)...)
		s, err := valkey.Open(t.Context(), configOf(t, server, asUser))
		if err == nil {
			_ = s.Close(t.Context())
		}
		if !errors.Is(err, limiter.ErrInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("a store without %s: %v", name, err)
		}
		if n := server.Must("DBSIZE"); n != "0" {
			t.Errorf("a store without %s has made %s keys", name, n)
		}
		if _, _, err := valkey.Check(t.Context(), configOf(t, server, asUser)); !errors.Is(err, limiter.ErrInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("a check without %s: %v", name, err)
		}
	}
}

// A user of a store whose writes wait for a replica needs the command for it, at the start and for a check.
func TestUserThatMayNotWait(t *testing.T) {
	server := withUser(t, "")
	waiting := func(cfg *valkey.Config) { asUser(cfg); cfg.Replica = true }
	for _, may := range []bool{false, true} {
		rules := userRules
		if may {
			rules += " +wait"
		}
		server.Must(append([]string{"ACL", "SETUSER", userName, "reset", "on", ">first"}, strings.Fields(rules)...)...)
		s, err := valkey.Open(t.Context(), configOf(t, server, waiting))
		if err == nil {
			_ = s.Close(t.Context())
		}
		_, _, check := valkey.Check(t.Context(), configOf(t, server, waiting))
		for name, err := range map[string]error{"store": err, "check": check} {
			if refused := errors.Is(err, limiter.ErrInvalid) && strings.Contains(err.Error(), "wait"); refused == may || may && err != nil {
				t.Errorf("%s of a user that may wait %t: %v", name, may, err)
			}
		}
	}
}

// A user without the keys of one kind fails at the start, and so does one that may not write them. A script that met
// them on its way would leave what it wrote.
func TestUserWithoutKeys(t *testing.T) {
	server := withUser(t, "")
	all := []string{"~{*}:history", "~{*}:table", "~{*}:i:*", "~{*}:p:*", "~{*}:g*", "~{*}:x", "~{*}:tok:*"}
	for i, keys := range all {
		for _, instead := range []string{"", "%R" + keys} {
			rules := strings.Replace(userRules, "~{*}:*", strings.Join(slices.Replace(slices.Clone(all), i, i+1, instead), " "), 1)
			server.Must("FLUSHALL")
			server.Must(append([]string{"ACL", "SETUSER", userName, "reset", "on", ">first"}, strings.Fields(rules)...)...)
			s, err := valkey.Open(t.Context(), configOf(t, server, asUser))
			if err == nil {
				_ = s.Close(t.Context())
			}
			if !errors.Is(err, limiter.ErrInvalid) {
				t.Errorf("a store with %q in the place of %q: %v", instead, keys, err)
			}
			if n := server.Must("DBSIZE"); n != "0" {
				t.Errorf("a store with %q in the place of %q has made %s keys", instead, keys, n)
			}
		}
	}
}
