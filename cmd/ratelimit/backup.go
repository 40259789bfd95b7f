package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
)

type backupFlags struct {
	client
	output string
}

func newBackup() *cobra.Command {
	var f backupFlags
	cmd := &cobra.Command{
		Use:   "backup",
		Short: "Copy the data directory of a running service",
		Long: `backup asks a service that runs with --data for a copy of all that it keeps: buckets,
stored limits and entities, audit, usage, and the secret that signs reservations. The
service goes on deciding meanwhile. The copy is checked before it gets its name.

It must run on the service's machine: the service answers nobody else. ratelimit restore
puts a copy back.`,
		Example: `  ratelimit backup
  ratelimit backup --server http://127.0.0.1:8080 --output /backups/ratelimit.backup`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			begin := time.Now()
			path, s, err := f.backup(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s; checked, %s\n", path, contents(&s), took(begin))
			return failed(err)
		},
	}
	f.flags(cmd, "http://127.0.0.1:8080")
	cmd.Flags().StringVarP(&f.output, "output", "o", "", "file, or directory, to write to; a file that is there is replaced (default: ratelimit-TIME.backup)")
	return cmd
}

// path returns where the backup goes.
func (f *backupFlags) path() string {
	name := "ratelimit-" + time.Now().UTC().Format("20060102T150405Z") + ".backup"
	if f.output == "" {
		return name
	}
	if info, err := os.Stat(f.output); err == nil && info.IsDir() {
		return filepath.Join(f.output, name)
	}
	return f.output
}

// backup returns where the backup is, and what is in it.
func (f *backupFlags) backup(ctx context.Context, progress io.Writer) (path string, s datafile.Summary, err error) {
	path = f.path()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url("/v1/backup"), nil)
	if err != nil {
		return path, s, fmt.Errorf("--server: %w", err)
	}
	// In the same directory, so that it can be renamed; readable by nobody else.
	part, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return path, s, failed(fmt.Errorf("--output: %w", err))
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(part.Name()))
		}
	}()
	err = f.fetch(req, part, progress)
	if err = errors.Join(err, part.Close()); err != nil {
		return path, s, err
	}
	if s, err = datafile.Verify(part.Name()); err != nil {
		return path, s, failed(fmt.Errorf("what the service has sent is no whole backup: %w", err))
	}
	return path, s, failed(os.Rename(part.Name(), path))
}

// fetch writes the answer to a file, and returns when the disk has it.
func (f *backupFlags) fetch(req *http.Request, to *os.File, progress io.Writer) error {
	resp, err := f.do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if got := resp.Header.Get("Content-Type"); got != admin.BackupType {
		return failed(fmt.Errorf("%s does not answer like this service: its answer is %q", req.URL.Redacted(), got))
	}
	if _, err := io.Copy(io.MultiWriter(to, newMeter(progress, "received")), resp.Body); err != nil {
		return failed(fmt.Errorf("the backup was cut off: %w", err))
	}
	if text := resp.Trailer.Get(admin.BackupError); text != "" {
		return failed(fmt.Errorf("the backup is not complete: %s", text))
	}
	return failed(to.Sync())
}

// meter reports on a transfer that takes long.
type meter struct {
	out   io.Writer
	verb  string
	bytes int64
	told  time.Time
}

const meterEvery = 2 * time.Second

func newMeter(out io.Writer, verb string) *meter {
	return &meter{out: out, verb: verb, told: time.Now()}
}

// Write implements io.Writer.
func (m *meter) Write(b []byte) (int, error) {
	m.bytes += int64(len(b))
	if now := time.Now(); now.Sub(m.told) >= meterEvery {
		m.told = now
		_, _ = fmt.Fprintf(m.out, "%s %s\n", m.verb, size(m.bytes)) // progress is no reason to fail
	}
	return len(b), nil
}

// contents says what is in a backup, for people.
func contents(s *datafile.Summary) string {
	return fmt.Sprintf("%s, with %d buckets, %d entities and limits, %d audit events, %d usage records", size(s.Bytes),
		s.Records[datafile.Buckets], s.Records[datafile.Records], s.Records[datafile.Audit], s.Records[datafile.Usage])
}

// size is a number of bytes, for people.
func size(n int64) string {
	if n < 10<<20 {
		return fmt.Sprintf("%d KiB", (n+1023)>>10)
	}
	return fmt.Sprintf("%d MiB", (n+1<<19)>>20)
}

func took(begin time.Time) string { return "in " + time.Since(begin).Round(time.Millisecond).String() }
