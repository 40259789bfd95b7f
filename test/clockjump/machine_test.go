package clockjump_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rlsv3common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/ratelimit/ratelimit/test/envoytest"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// machine is one with a wall clock of its own. Its programs see each change at once.
type machine struct{ clock *os.File }

func newMachine(t *testing.T) *machine {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "clock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	m := &machine{file}
	m.jump(t, 0)
	return m
}

// jump sets the wall clock to the true time and so much more.
func (m *machine) jump(t *testing.T, to time.Duration) {
	t.Helper()
	seconds := binary.NativeEndian.AppendUint64(nil, uint64(to/time.Second))
	if _, err := m.clock.WriteAt(seconds, 0); err != nil {
		t.Fatal(err)
	}
}

// program is a running `ratelimit serve`.
type program struct {
	*envoytest.Service

	rls rlsv3.RateLimitServiceClient
}

// serve starts a program on the machine.
func (m *machine) serve(t *testing.T, config string) *program {
	t.Helper()
	s := envoytest.StartServiceWith(t, config, "CLOCKJUMP_FILE="+m.clock.Name())
	return &program{s, rlsv3.NewRateLimitServiceClient(programtest.DialPlain(t, s.GRPC))}
}

// ask asks for a token of a key.
func (p *program) ask(t *testing.T, key, value string) (admitted bool) {
	t.Helper()
	got, err := p.rls.ShouldRateLimit(t.Context(), &rlsv3.RateLimitRequest{Domain: "d", Descriptors: []*rlsv3common.RateLimitDescriptor{
		{Entries: []*rlsv3common.RateLimitDescriptor_Entry{{Key: key, Value: value}}},
	}})
	if err != nil {
		t.Errorf("%s: %v", key, err)
	}
	return got.GetOverallCode() == rlsv3.RateLimitResponse_OK
}

// metric returns the sum of a metric's series, and 0 for one that was never counted.
func (p *program) metric(t *testing.T, name string) (sum float64) {
	t.Helper()
	all, err := p.Metrics()
	if err != nil {
		t.Fatal(err)
	}
	for series, value := range all {
		if base, _, _ := strings.Cut(series, "{"); base == name {
			sum += value
		}
	}
	return sum
}
