package server

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// The numbers in the documentation are those of the program.
func TestMemoryIsDocumented(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile("../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(strings.Join(strings.Fields(string(text)), " "), ",", "")
	}
	configuration, guarantees := read("configuration.md"), read("guarantees.md")
	for page, want := range map[*string][]string{
		&configuration: {
			fmt.Sprintf("A bucket takes %d bytes at most", embedded.BucketBytes),
			fmt.Sprintf("half the memory in buckets of %d bytes", embedded.BucketBytes),
			fmt.Sprintf("with 256 MiB there may be %d buckets", bucketsIn(256<<20)),
			fmt.Sprintf("%d %% of the limit", groupPercent),
		},
		&guarantees: {
			fmt.Sprintf("There are %d slots", embedded.OverflowSlots),
			fmt.Sprintf("at most %d shared buckets", embedded.DefaultMaxOverflow),
		},
	} {
		for _, text := range want {
			if !strings.Contains(*page, text) {
				t.Errorf("the documentation does not say: %s", text)
			}
		}
	}
}

func TestBucketsFollowTheMemory(t *testing.T) {
	s := &backend{cfg: programtest.Parsed(t, programtest.TwoPerMinute)}
	most := s.EmbeddedConfig().MaxBuckets
	if spare := s.fallbackConfig().MaxBuckets; most < leastBuckets || spare*spareShare > most && spare > leastBuckets {
		t.Errorf("%d buckets, and %d beside them", most, spare)
	}
	s.cfg.Store.Embedded.MaxBuckets = 7
	if got := s.EmbeddedConfig().MaxBuckets; got != 7 {
		t.Errorf("%d buckets, want the 7 of the file", got)
	}
	if got := bucketsIn(0); got != leastBuckets {
		t.Errorf("%d buckets without memory, want %d", got, leastBuckets)
	}
}
