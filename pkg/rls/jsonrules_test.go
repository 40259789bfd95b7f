package rls_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// A refund and a charge over JSON each need a setting of the configuration. A refused call changes
// nothing. Over gRPC both are allowed.
func TestJSONRefundsAndCharges(t *testing.T) {
	t.Parallel()
	take := descriptorJSON(`"hitsAddend":"1"`, "api_key", "a", "model", "m")
	refund := descriptorJSON(`"hitsAddend":"1","isNegativeHits":true`, "api_key", "b", "model", "m")
	charge := descriptorJSON(`"hitsAddend":"1"`, "api_key", "a", "model", "m", "meter", "tokens")
	for _, test := range []struct {
		name, descriptors string
		needs             rls.JSONOptions
		error             string
	}{
		{"a take", take, rls.JSONOptions{}, ""},
		{"a take and a refund", take + "," + refund, rls.JSONOptions{Refunds: true}, "server.http.refunds"},
		{"a take and a charge", take + "," + charge, rls.JSONOptions{Charges: true}, "server.http.charges"},
	} {
		for _, allowed := range []rls.JSONOptions{{}, {Refunds: true}, {Charges: true}, {Refunds: true, Charges: true}} {
			t.Run(fmt.Sprintf("%s, with %+v", test.name, allowed), func(t *testing.T) {
				t.Parallel()
				e := newEnv(t, func(c *rls.Config) { c.JSON = allowed })
				body := `{"domain":"llm","descriptors":[` + test.descriptors + `]}`
				w := httptest.NewRecorder()
				e.service.JSONHandler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/json", strings.NewReader(body)))
				want, left := http.StatusOK, uint32(10)
				if test.needs.Refunds && !allowed.Refunds || test.needs.Charges && !allowed.Charges {
					want = http.StatusForbidden
				} else {
					left--
				}
				if w.Code != want || want == http.StatusForbidden && !strings.Contains(w.Body.String(), test.error) {
					t.Errorf("got %d %s, want %d", w.Code, w.Body, want)
				}
				answer, err := e.ask(t, descriptor1(`"hitsAddend":"0"`, "api_key", "a", "model", "m"))
				if err != nil {
					t.Fatal(err)
				}
				if got := answer.GetStatuses()[0].GetLimitRemaining(); got != left {
					t.Errorf("got %d left, want %d", got, left)
				}
				if _, err := e.ask(t, body); err != nil {
					t.Errorf("over gRPC: %v", err)
				}
			})
		}
	}
}

// Where charges are not allowed, an explicit number for a limit of an envoyproxy/ratelimit file is
// an ordinary take, unless the file says that it is always a charge.
func TestJSONNumbersOfATree(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		overdraw descriptor.Overdraw
		charges  bool
		code     int
		left     uint32
	}{
		{"auto", descriptor.OverdrawAuto, false, http.StatusTooManyRequests, 1000},
		{"auto, with charges", descriptor.OverdrawAuto, true, http.StatusTooManyRequests, 0},
		{"always", descriptor.OverdrawAlways, false, http.StatusForbidden, 1000},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, func(c *rls.Config) { c.JSON.Charges = test.charges })
			e.service.Reload(compile(t, []descriptor.DomainSpec{{
				Path: "p", Domain: "envoy", Tree: []descriptor.TreeSpec{perHour("user", 1000)}, Overdraw: test.overdraw,
			}}), nil)
			e.wantCode(t, "a peek", hits("user", "u", zero), isOK, 1000)
			body := `{"domain":"envoy","descriptors":[` + hits("user", "u", explicit(1500)) + `]}`
			w := httptest.NewRecorder()
			e.service.JSONHandler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/json", strings.NewReader(body)))
			if w.Code != test.code {
				t.Errorf("got %d %s, want %d", w.Code, w.Body, test.code)
			}
			want := rlsv3.RateLimitResponse_OK
			if test.left == 0 {
				want = isOver
			}
			e.wantCode(t, "tokens left", hits("user", "u", zero), want, test.left)
		})
	}
}
