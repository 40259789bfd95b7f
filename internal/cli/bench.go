package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// Bounds of a load.
const (
	maxBenchConnections = 1000
	maxBenchWorkers     = 10_000
	maxBenchRate        = 1_000_000
	maxBenchKeys        = 10_000_000
	maxBenchTime        = time.Hour
)

// keyPlace stands for the number of a key in an entry.
const keyPlace = "{n}"

type benchFlags struct {
	address     string
	tls         bool
	ca          string
	connections int
	workers     int
	rate        int
	duration    time.Duration
	requests    int64
	keys        int
	draw        string
	hits        uint64
	deadline    time.Duration
}

// NewBench returns the command bench.
func NewBench() *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use: "bench DOMAIN KEY=VALUE...", Short: "Put load on a running service, and measure its answers",
		Long: `bench asks a running service over gRPC, as Envoy does, and shows the answers by result and
the time that they took. It takes tokens like any client: use a domain for tests, or
--hits 0, which looks. An interrupt ends it, and shows the measurement so far. Where nothing
answers for a second, it ends with exit code 3.

` + keyPlace + ` in a value stands for a number from 0 up to --keys. Without --rate each worker asks again
as soon as it is answered. With --rate, a request that waits for a worker counts from the
time at which it was due.`,
		Example: `  ratelimit bench shop user=u-{n} --keys 1000 --duration 10s
  ratelimit bench shop user=u-{n} --keys 100000 --draw zipf --rate 5000 --workers 200`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return fmt.Errorf("%s needs a domain and at least one KEY=VALUE, such as: ratelimit bench shop user=u-{n} --keys 1000", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := question(args)
			if err == nil {
				err = f.check()
			}
			if err != nil {
				return err
			}
			return f.run(cmd, q)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.address, "address", "127.0.0.1:8081", "address of the gRPC side of the service")
	flags.BoolVar(&f.tls, "tls", false, "the service speaks TLS")
	flags.StringVar(&f.ca, "ca", "", "PEM file of the authorities that the service's certificate may be of (default: those of the system)")
	flags.IntVar(&f.connections, "connections", 1, "number of connections")
	flags.IntVar(&f.workers, "workers", 10, "most requests under way at a time")
	flags.IntVar(&f.rate, "rate", 0, "requests a second; 0 = as many as the workers make")
	flags.DurationVar(&f.duration, "duration", 10*time.Second, "how long, at most 1h")
	flags.Int64Var(&f.requests, "requests", 0, "end after so many requests; 0 = after --duration alone")
	flags.IntVar(&f.keys, "keys", 1, "number of keys that "+keyPlace+" stands for")
	flags.StringVar(&f.draw, "draw", "even", "even: each key is as likely; zipf: few keys get most requests")
	flags.Uint64Var(&f.hits, "hits", 1, "hits_addend of each request; 0 is a look")
	flags.DurationVar(&f.deadline, "deadline", time.Second, "time for an answer, after which a request counts as DeadlineExceeded")
	return cmd
}

func (f *benchFlags) check() error {
	within := func(name string, n, least, most int64) error {
		if n < least || n > most {
			return fmt.Errorf("--%s is %d; it must be %d to %d", name, n, least, most)
		}
		return nil
	}
	err := errors.Join(
		within("connections", int64(f.connections), 1, maxBenchConnections), within("workers", int64(f.workers), 1, maxBenchWorkers),
		within("rate", int64(f.rate), 0, maxBenchRate), within("keys", int64(f.keys), 1, maxBenchKeys), within("requests", f.requests, 0, 1<<40))
	switch {
	case err != nil:
		return err
	case f.duration <= 0 || f.duration > maxBenchTime:
		return fmt.Errorf("--duration is %v; it must be above 0, and at most %v", f.duration, maxBenchTime)
	case f.deadline <= 0 || f.deadline > time.Minute:
		return fmt.Errorf("--deadline is %v; it must be above 0, and at most 1m", f.deadline)
	case f.draw != "even" && f.draw != "zipf":
		return fmt.Errorf("--draw is %.100q; it must be even or zipf", f.draw)
	case f.ca != "" && !f.tls:
		return errors.New("--ca is for a service that speaks TLS: add --tls")
	}
	return nil
}

// dial opens the connections. None is made before the first request.
func (f *benchFlags) dial() (clients []*rls.Client, end func(), err error) {
	secure := insecure.NewCredentials()
	if f.tls {
		cfg := &tls.Config{MinVersion: tls.VersionTLS12}
		if f.ca != "" {
			pem, err := config.ReadFile(f.ca, config.MaxPEM)
			if err != nil {
				return nil, nil, fmt.Errorf("--ca: %w", err)
			}
			cfg.RootCAs = x509.NewCertPool()
			if !cfg.RootCAs.AppendCertsFromPEM(pem) {
				return nil, nil, fmt.Errorf("--ca: %s holds no certificate in PEM form", f.ca)
			}
		}
		secure = credentials.NewTLS(cfg)
	}
	var conns []*grpc.ClientConn
	end = func() {
		for _, conn := range conns {
			_ = conn.Close() // nothing is under way
		}
	}
	for range f.connections {
		conn, err := grpc.NewClient(f.address, grpc.WithTransportCredentials(secure))
		if err != nil {
			end()
			return nil, nil, fmt.Errorf("--address: %w", err)
		}
		conns = append(conns, conn)
		clients = append(clients, rls.NewClient(conn))
	}
	return clients, end, nil
}

func (f *benchFlags) run(cmd *cobra.Command, q *admin.Question) error {
	clients, end, err := f.dial()
	if err != nil {
		return err
	}
	defer end()
	line := newProgress(cmd.ErrOrStderr(), "requests")
	result := runLoad(cmd.Context(), loadConfig{
		Workers: f.workers, Rate: f.rate, For: f.duration, Requests: f.requests, Keys: f.keys, Zipf: f.draw == "zipf", Silence: codes.Unavailable.String(),
		Call: func(ctx context.Context, worker, key int) string {
			return f.call(ctx, clients[worker%len(clients)], q, key)
		},
		Progress: func(answers int64, elapsed time.Duration) {
			line.line(fmt.Sprintf("%v: %d answers, %d a second", elapsed.Round(time.Second), answers, perSecond(answers, elapsed)))
		},
	})
	line.end()
	if err := writeBench(cmd.OutOrStdout(), result); err != nil {
		return command.Failed(err)
	}
	if n := result.Latency.Count(); n > 0 && n == result.Codes[codes.Unavailable.String()] {
		return command.Unanswered(fmt.Errorf("no rate limit service answers at %s: start it, or name its gRPC address with --address", f.address))
	}
	return nil
}

// call makes one request, and returns its result.
func (f *benchFlags) call(ctx context.Context, client *rls.Client, q *admin.Question, key int) string {
	d := descriptor.Descriptor{Hits: f.hits, HitsSet: f.hits != 1}
	for _, e := range q.Entries {
		d.Entries = append(d.Entries, descriptor.Entry{Key: e.Key, Value: strings.ReplaceAll(e.Value, keyPlace, strconv.Itoa(key))})
	}
	ctx, cancel := context.WithTimeout(ctx, f.deadline)
	defer cancel()
	denied, err := client.Ask(ctx, &descriptor.Call{Domain: q.Domain, Descriptors: []descriptor.Descriptor{d}})
	switch {
	case err != nil:
		return status.Code(err).String()
	case denied:
		return "OVER_LIMIT"
	}
	return "OK"
}

func perSecond(n int64, elapsed time.Duration) int64 {
	return n * 1000 / max(elapsed.Milliseconds(), 1)
}

// writeBench writes the measurement.
func writeBench(w io.Writer, r *loadResult) error {
	var b strings.Builder
	n := r.Latency.Count()
	fmt.Fprintf(&b, "%d answers in %v, %d a second\n", n, roundLatency(r.Elapsed), perSecond(n, r.Elapsed))
	if r.Behind > 0 {
		fmt.Fprintf(&b, "%d requests of the rate were not made: all workers waited for answers; use more --workers\n", r.Behind)
	}
	if n > 0 {
		fmt.Fprintf(&b, "\nRESULT\n")
		for _, code := range slices.Sorted(maps.Keys(r.Codes)) {
			fmt.Fprintf(&b, "%10d  %s\n", r.Codes[code], code)
		}
		fmt.Fprintf(&b, "\nTIME OF AN ANSWER\n")
		for _, q := range []struct {
			name        string
			thousandths int64
		}{{"50 %", 500}, {"90 %", 900}, {"99 %", 990}, {"99.9 %", 999}} {
			fmt.Fprintf(&b, "%10s  %v\n", q.name, roundLatency(r.Latency.Quantile(q.thousandths)))
		}
		fmt.Fprintf(&b, "%10s  %v\n\n%s", "longest", roundLatency(r.Latency.Max()), r.Latency.Chart())
	}
	_, err := io.WriteString(w, b.String())
	return err
}
