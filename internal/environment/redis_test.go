package environment_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/internal/environment"
)

// The variables of a Redis server name the store, and what they set of it.
func TestRedis(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		variables map[string]string
		want      config.Valkey
	}{
		"an address":        {map[string]string{"REDIS_URL": "redis:6379", "REDIS_SOCKET_TYPE": "tcp"}, config.Valkey{Addresses: []string{"redis:6379"}}},
		"a URL":             {map[string]string{"REDIS_URL": "redis://redis", "REDIS_TYPE": "single", "BACKEND_TYPE": "redis"}, config.Valkey{Addresses: []string{"redis:6379"}}},
		"a URL of all":      {map[string]string{"REDIS_URL": "rediss://:p:w@redis:7000/3"}, config.Valkey{Addresses: []string{"redis:7000"}, Password: "p:w", Database: 3, TLS: config.ClientTLS{Enabled: true}}},
		"a URL with a user": {map[string]string{"REDIS_URL": "redis://me:pw@[::1]:7000"}, config.Valkey{Addresses: []string{"[::1]:7000"}, Username: "me", Password: "pw"}},
		"a password":        {map[string]string{"REDIS_URL": "redis:6379", "REDIS_AUTH": "pw"}, config.Valkey{Addresses: []string{"redis:6379"}, Password: "pw"}},
		"a user, and TLS": {
			map[string]string{"REDIS_URL": "redis:6379", "REDIS_AUTH": "me:p:w", "REDIS_TLS": "true", "REDIS_TLS_CACERT": "ca", "REDIS_TLS_CLIENT_CERT": "c", "REDIS_TLS_CLIENT_KEY": "k"},
			config.Valkey{Addresses: []string{"redis:6379"}, Username: "me", Password: "p:w", TLS: config.ClientTLS{Enabled: true, CA: "ca", Cert: "c", Key: "k"}},
		},
		"a cluster": {map[string]string{"REDIS_URL": "a:6379,b:6379", "REDIS_TYPE": "CLUSTER"}, config.Valkey{Addresses: []string{"a:6379", "b:6379"}}},
		"sentinels": {
			map[string]string{"REDIS_URL": "mymaster,a:26379,b:26379", "REDIS_TYPE": "SENTINEL", "REDIS_AUTH": "pw", "REDIS_SENTINEL_AUTH": "s:spw"},
			config.Valkey{Addresses: []string{"a:26379", "b:26379"}, Master: "mymaster", Password: "pw", SentinelUsername: "s", SentinelPassword: "spw"},
		},
	} {
		s, c := read(t, test.variables)
		test.want.Create, test.want.OnLoss = true, config.LossRecreate
		if diff := cmp.Diff(test.want, c.Store.Valkey); diff != "" || c.Store.Type != config.StoreValkey {
			t.Errorf("%s: store %s (-want +got):\n%s", name, c.Store.Type, diff)
		}
		if len(s.Accepted) > 0 || len(s.Ignored) > 0 || s.Other != "REDIS_URL" {
			t.Errorf("%s: accepted %q, ignored %q, other %q", name, s.Accepted, s.Ignored, s.Other)
		}
	}
}

// A store of ours, and Memcached, leave a Redis server unused.
func TestRedisIsNotTheStore(t *testing.T) {
	t.Parallel()
	for variable, value := range map[string]string{"RATELIMIT_DATA": "/data", "RATELIMIT_TABLE": "t", "BACKEND_TYPE": "memcache"} {
		s, c := read(t, map[string]string{"REDIS_URL": "redis:6379", "REDIS_TYPE": "CLUSTER", variable: value})
		if c.Store.Type == config.StoreValkey || s.Other != "REDIS_URL" {
			t.Errorf("%s: the store is %q, other %q", variable, c.Store.Type, s.Other)
		}
	}
	if s, c := read(t, map[string]string{"REDIS_URL": "redis:6379", "REDIS_PERSECOND": "true", "REDIS_PERSECOND_URL": "second:6379"}); c.Store.Valkey.Addresses[0] != "redis:6379" || !cmp.Equal(s.Ignored, []string{"REDIS_PERSECOND_URL"}) {
		t.Errorf("a second server: %+v, ignored %q", c.Store, s.Ignored)
	}
}

// A server that cannot be the store is refused. No error has a password.
func TestWrongRedis(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		variables map[string]string
		want      string
	}{
		"a cluster":                   {map[string]string{"REDIS_TYPE": "CLUSTER", "REDIS_URL": "redis:6379,hush"}, "REDIS_URL: must be addresses of servers of the cluster"},
		"another type":                {map[string]string{"REDIS_TYPE": "DOUBLE", "REDIS_URL": "redis:6379"}, `REDIS_TYPE: "DOUBLE" must be SINGLE, SENTINEL or CLUSTER`},
		"another store":               {map[string]string{"BACKEND_TYPE": "Redis", "REDIS_URL": "redis:6379"}, `BACKEND_TYPE: "Redis" must be redis or memcache`},
		"a socket":                    {map[string]string{"REDIS_SOCKET_TYPE": "unix", "REDIS_URL": "/run/redis.sock"}, "REDIS_SOCKET_TYPE"},
		"no port":                     {map[string]string{"REDIS_URL": "hush"}, "REDIS_URL: must be host:port"},
		"another scheme":              {map[string]string{"REDIS_URL": "http://:hush@redis"}, "REDIS_URL: must be host:port"},
		"a URL that is none":          {map[string]string{"REDIS_URL": "redis://:hu sh@re dis:port"}, "REDIS_URL: must be host:port"},
		"a database":                  {map[string]string{"REDIS_URL": "redis://:hush@redis/first"}, "REDIS_URL: must be host:port"},
		"sentinels without a name":    {map[string]string{"REDIS_TYPE": "SENTINEL", "REDIS_URL": "a:26379"}, "REDIS_URL: must be the name of the primary"},
		"sentinels without a port":    {map[string]string{"REDIS_TYPE": "SENTINEL", "REDIS_URL": "m,hush"}, "REDIS_URL: must be the name of the primary"},
		"a certificate without a key": {map[string]string{"REDIS_URL": "rediss://redis", "REDIS_TLS_CLIENT_CERT": "c"}, "one needs the other"},
		"TLS that is neither":         {map[string]string{"REDIS_TLS": "perhaps"}, "REDIS_TLS"},
	} {
		_, err := environment.Read(lookup(test.variables))
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), "hu sh") {
			t.Errorf("%s: got %v, want %s", name, err, test.want)
		}
	}
}
