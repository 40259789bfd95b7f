package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/test/kit/proctest"
)

// envoyFile is a limit of envoyproxy/ratelimit: 1,000 an hour for each user.
const envoyFile = "domain: shop\ndescriptors: [{key: user, rate_limit: {unit: hour, requests_per_unit: 1000}}]\n"

// A gateway can peek at one replica of a fleet and charge at another, as Envoy
// Gateway does. The fleet then gives no more than the limit and one charge past it.
// That holds in its first minute, and when both replicas have seen a peek.
func TestFleetChargesEnvoyFiles(t *testing.T) {
	for _, age := range []time.Duration{0, 2 * time.Minute} {
		t.Run(fmt.Sprint(age), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newTable(t)
				replicas := make([]replica, 2)
				for i := range replicas {
					cfg, err := config.Parse("c.yaml", []byte("include: [{path: envoy.yaml}]"), fstest.MapFS{"envoy.yaml": {Data: []byte(envoyFile)}})
					if err != nil {
						t.Fatal(err)
					}
					cfg.Server.HTTP.Charges = true // /json stands for gRPC
					log := new(proctest.LogBuffer)
					s, err := openReplica(t.Context(), cfg, db, log)
					if err != nil {
						t.Fatal(err)
					}
					replicas[i] = replica{s, log}
					defer replicas[i].stop()
				}
				time.Sleep(age)
				if age > 0 {
					for _, r := range replicas {
						r.peek(t, "another")
					}
				}
				charged := 0
				for i := range 6 {
					if !replicas[i%2].peek(t, "ada") {
						break
					}
					code, _ := replicas[(i+1)%2].call(t, 700, "user", "ada")
					charged += 700
					if (code == http.StatusOK) != (charged <= 1000) {
						t.Errorf("the charge that makes it %d got %d", charged, code)
					}
				}
				if charged != 1400 {
					t.Errorf("tokens through a limit of 1000: got %d, want 1400", charged)
				}
			})
		})
	}
}

// peek asks with an explicit 0 and reports whether the user may go on.
func (r replica) peek(t *testing.T, user string) bool {
	t.Helper()
	code, text := r.do(t, http.MethodPost, "/json", fmt.Sprintf(`{"domain":"shop","descriptors":[{"entries":[{"key":"user","value":%q}],"hitsAddend":"0"}]}`, user))
	if !json.Valid([]byte(text)) {
		t.Fatalf("got %q", text)
	}
	return code == http.StatusOK
}
