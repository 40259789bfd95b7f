package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
)

type backupFlags struct {
	connection
	output string
	data   string // directory of the service to find
	config string // file of the service to find
}

// stdoutName is the standard output as --output names it.
const stdoutName = "-"

// NewBackup returns the command backup.
func NewBackup() *cobra.Command {
	var f backupFlags
	cmd := &cobra.Command{
		Use:   "backup",
		Short: "Copy the data directory of a running service",
		Long: `backup asks a service that runs with --data for a copy of all that it keeps: buckets,
stored limits and entities, audit, usage, and the secret that signs reservations. The
service goes on deciding meanwhile. The copy is checked before it gets its name; with
--output - it is checked in a temporary file, and goes to the standard output as a whole.

It asks the service's admin socket, which the service's user and root can open, or its
admin listener on TCP. ratelimit restore puts a copy back.`,
		Example: `  ratelimit backup --data /var/lib/ratelimit
  ratelimit backup --config ratelimit.yaml --output /backups/ratelimit.backup
  kubectl exec POD -- ratelimit backup --data /var/lib/ratelimit --output - > ratelimit.backup
  ratelimit backup --server https://ratelimit:8082 --token-file /run/secrets/token`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.find(cmd.Context(), f.data, f.config); err != nil {
				return err
			}
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f.flags(cmd.Flags(), adminUsage)
	cmd.Flags().StringVarP(&f.config, "config", "c", "", "configuration file of the service to ask (default: "+command.DefaultFile+" in the working directory, if it exists)")
	cmd.Flags().StringVar(&f.data, "data", "", "data directory of the service to ask")
	cmd.Flags().StringVarP(&f.output, "output", "o", "", "file to write to, which is replaced; - is the standard output (default: ratelimit-TIME.backup)")
	_ = cmd.RegisterFlagCompletionFunc("output", offerFiles) // the flag is there
	return cmd
}

// run makes the backup and summarizes it: on the standard output, unless the backup
// goes there.
func (f *backupFlags) run(ctx context.Context, stdout, stderr io.Writer) error {
	begin, name, said := time.Now(), f.output, stdout
	var s datafile.Summary
	var err error
	if name == stdoutName {
		name, said = "standard output", stderr
		s, err = f.stream(ctx, stdout, stderr)
	} else {
		name, s, err = f.toFile(ctx, stderr)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(said, "%s: %s; checked, %s\n", name, contents(&s), took(begin))
	return command.Failed(err)
}

// stream writes the backup once all of it is there and checked.
func (f *backupFlags) stream(ctx context.Context, to, progress io.Writer) (s datafile.Summary, err error) {
	part, err := os.CreateTemp("", "ratelimit-*.backup")
	if err != nil && f.data != "" { // in an image without a directory for temporary files
		part, err = os.CreateTemp(f.data, ".backup-*")
	}
	if err != nil {
		return s, command.Failed(fmt.Errorf("--output - needs room for a temporary file; TMPDIR says where: %w", err))
	}
	defer func() { err = errors.Join(err, part.Close(), os.Remove(part.Name())) }()
	if s, err = f.receive(ctx, part, progress); err != nil {
		return s, err
	}
	if _, err := part.Seek(0, io.SeekStart); err != nil {
		return s, command.Failed(err)
	}
	_, err = io.Copy(to, part)
	return s, command.Failed(err)
}

// toFile returns where the backup is, and its summary.
func (f *backupFlags) toFile(ctx context.Context, progress io.Writer) (path string, s datafile.Summary, err error) {
	name := f.output
	if name == "" {
		name = "ratelimit-" + time.Now().UTC().Format("20060102T150405Z") + ".backup"
	}
	path, err = command.Target(name)
	if err != nil {
		return name, s, command.Failed(fmt.Errorf("--output: %w", err))
	}
	if datafile.IsOwn(path) {
		return name, s, command.Failed(fmt.Errorf("--output: %s is the file of a data directory, which a service may have open: name another file", name))
	}
	// In the same directory, so that it can be renamed; only this user can read it.
	part, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return name, s, command.Failed(fmt.Errorf("--output: there is no directory %s", filepath.Dir(path)))
	case err != nil:
		return name, s, command.Failed(fmt.Errorf("--output: %w", err))
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(part.Name()))
		}
	}()
	s, err = f.receive(ctx, part, progress)
	if err = errors.Join(err, part.Close()); err != nil {
		return name, s, err
	}
	return name, s, command.Failed(os.Rename(part.Name(), path))
}

// receive gets the backup into a file, and checks it there.
func (f *backupFlags) receive(ctx context.Context, part *os.File, progress io.Writer) (s datafile.Summary, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url("/v1/backup"), nil)
	if err != nil {
		return s, fmt.Errorf("--server: %w", err)
	}
	if err := f.fetch(req, part, progress); err != nil {
		return s, err
	}
	if s, err = datafile.Verify(part.Name()); err != nil {
		return s, command.Failed(fmt.Errorf("the service has sent no whole backup: %w", err))
	}
	return s, nil
}

// fetch writes the answer to a file, and returns when the disk has it.
func (f *backupFlags) fetch(req *http.Request, to *os.File, progress io.Writer) error {
	resp, err := f.do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if got := resp.Header.Get("Content-Type"); got != admin.BackupType {
		return command.Failed(fmt.Errorf("%s does not answer like this service: its answer is %q", req.URL.Redacted(), got))
	}
	if _, err := io.Copy(io.MultiWriter(to, newMeter(progress, "received")), resp.Body); err != nil {
		return command.Failed(fmt.Errorf("the backup was cut off: %w", err))
	}
	if text := resp.Trailer.Get(admin.BackupError); text != "" {
		return command.Failed(fmt.Errorf("the backup is not complete: %s", text))
	}
	return command.Failed(to.Sync())
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

// contents describes the contents of a backup, for people.
func contents(s *datafile.Summary) string {
	return fmt.Sprintf("%s (buckets: %d, entities and limits: %d, audit events: %d, usage records: %d)", size(s.Bytes),
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
