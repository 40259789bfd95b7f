package awscmd

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

func TestParseObject(t *testing.T) {
	for url, want := range map[string]objectPlace{
		"s3://fleet/ratelimit.yaml":       {Bucket: "fleet", Key: "ratelimit.yaml"},
		"s3://fleet.example/a/b=1/c.yaml": {Bucket: "fleet.example", Key: "a/b=1/c.yaml"},
	} {
		if p, err := parseObject(url); err != nil || p != want || p.String() != url {
			t.Errorf("%s: %v, %v", url, p, err)
		}
	}
	for _, url := range []string{"", "fleet/a", "s3:/fleet/a", "s3://fleet", "s3://fleet/", "s3://fleet/a/", "s3://Fleet/a", "s3://fleet/a?b", "s3://fleet/" + strings.Repeat("a", 1025)} {
		if p, err := parseObject(url); !errors.Is(err, limiter.ErrInvalid) || !strings.Contains(err.Error(), "s3://bucket/ratelimit.yaml") {
			t.Errorf("%.40q: %v, %v", url, p, err)
		}
	}
}

func FuzzParseObject(f *testing.F) {
	f.Add("s3://fleet/ratelimit.yaml")
	f.Fuzz(func(t *testing.T, url string) {
		p, err := parseObject(url)
		if err != nil {
			return
		}
		if again, err := parseObject(p.String()); err != nil || again != p {
			t.Errorf("%q is %q, and that %q, %v", url, p, again, err)
		}
	})
}

// The error of an answer that is no object has its reason, and an answer that is too large is not
// read to its end.
func TestGetRefuses(t *testing.T) {
	answer := func(http.ResponseWriter) {}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w) }))
	t.Cleanup(server.Close)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_S3": server.URL, "AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_MAX_ATTEMPTS": "1",
	} {
		t.Setenv(name, value)
	}
	o, err := openObject(t.Context(), objectPlace{Bucket: "fleet", Key: "c.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	for code, want := range map[int]struct {
		kind error
		says string
	}{
		http.StatusForbidden:           {limiter.ErrInvalid, "s3:GetObject"},
		http.StatusNotFound:            {limiter.ErrInvalid, "no such object"},
		http.StatusInternalServerError: {limiter.ErrUnavailable, "s3://fleet/c.yaml"},
		http.StatusOK:                  {limiter.ErrInvalid, "16 MiB"},
	} {
		answer = func(w http.ResponseWriter) {
			w.WriteHeader(code)
			for line := strings.Repeat("# a configuration\n", 1<<10); code == http.StatusOK; {
				if _, err := fmt.Fprint(w, line); err != nil {
					return // the reader has gone
				}
			}
		}
		if _, _, err := o.Get(t.Context(), ""); !errors.Is(err, want.kind) || !strings.Contains(err.Error(), want.says) {
			t.Errorf("%d: %v", code, err)
		}
	}
}
