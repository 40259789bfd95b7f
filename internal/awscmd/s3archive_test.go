package awscmd

import (
	"errors"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

func TestParseArchive(t *testing.T) {
	for url, want := range map[string]string{
		"s3://audit-events":           "s3://audit-events/",
		"s3://audit-events/":          "s3://audit-events/",
		"s3://audit-events/a/b":       "s3://audit-events/a/b/",
		"s3://audit.events.example/a": "s3://audit.events.example/a/",
	} {
		p, err := parseArchive(url)
		if err != nil || p.String() != want {
			t.Errorf("%s: %v, %v", url, p, err)
		}
		if again, err := parseArchive(p.String()); err != nil || again != p {
			t.Errorf("%s again: %v, %v", p, again, err)
		}
	}
	for _, url := range []string{
		"", "audit-events", "s3:/audit-events", "s3://", "s3:///a", "s3://ab", "s3://Audit", "s3://audit_events", "s3://-audit", "https://audit-events",
		"s3://audit-events/a?b", "s3://audit-events/" + strings.Repeat("a", 513),
	} {
		if p, err := parseArchive(url); !errors.Is(err, limiter.ErrInvalid) {
			t.Errorf("%.40q: %v, %v", url, p, err)
		}
	}
}

func TestOpenNeedsARegion(t *testing.T) {
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/none")
	if _, err := openArchive(t.Context(), archivePlace{Bucket: "audit-events"}); !errors.Is(err, limiter.ErrInvalid) || !strings.Contains(err.Error(), "AWS_REGION") {
		t.Errorf("got %v", err)
	}
}

func FuzzParseArchive(f *testing.F) {
	f.Add("s3://audit-events/a")
	f.Fuzz(func(t *testing.T, url string) {
		p, err := parseArchive(url)
		if err != nil {
			return
		}
		if again, err := parseArchive(p.String()); err != nil || again != p {
			t.Errorf("%q is %q, and that %q, %v", url, p, again, err)
		}
	})
}
