package cli

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

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/internal/server"
	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
)

type restoreFlags struct {
	connection
	data   string // directory of a service that does not run
	config string // file of the service to find
}

// NewRestore returns the command restore.
func NewRestore() *cobra.Command {
	var f restoreFlags
	cmd := &cobra.Command{
		Use:               "restore FILE",
		ValidArgsFunction: offerFiles,
		Short:             "Put a backup in the place of a data directory's file, or into a running service",
		Long: `restore puts back a copy that ratelimit backup made. The copy is checked before anything
changes.

With --data it takes the place of the directory's file, which is kept beside it under
another name. No service may have the directory open. Buckets then begin with their
balances at the time of the backup and the refill since, up to their capacity: the amount
taken since the backup is not known.

Without --data a running service takes it while it serves, over its admin socket or its
admin listener on TCP. Entities, limits, audit and usage become those of the backup, all
at once. Each bucket keeps the lower of its current and its backed-up balance, so that a
restore gives no caller tokens. Secrets stay.`,
		Example: `  ratelimit restore --data /var/lib/ratelimit ratelimit-20260102T030405Z.backup
  ratelimit restore --config ratelimit.yaml ratelimit-20260102T030405Z.backup
  ratelimit restore --server unix:///var/lib/ratelimit/admin.sock ratelimit-20260102T030405Z.backup`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("restore needs one FILE, as ratelimit backup has written it")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.restore(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f.flags(cmd.Flags(), adminUsage)
	cmd.Flags().StringVarP(&f.config, "config", "c", "", "configuration file of the running service to restore into (default: "+command.DefaultFile+" in the working directory, if it exists)")
	cmd.Flags().StringVar(&f.data, "data", "", "data directory of a service that does not run")
	return cmd
}

func (f *restoreFlags) restore(ctx context.Context, path string, stdout, progress io.Writer) error {
	begin := time.Now()
	if f.data != "" && (f.server != "" || f.config != "") {
		return errors.New("say where to restore to, one of: --data DIR, when no service has it open; or --server URL or --config FILE, into a running one")
	}
	file, err := os.Open(path) //nolint:gosec // the path is the operator's
	if err != nil {
		return command.Failed(err)
	}
	defer file.Close() //nolint:errcheck // nothing was written through it
	s, err := datafile.Verify(path)
	if err != nil {
		return command.Failed(fmt.Errorf("the backup cannot be restored: %w", err))
	}
	place, note := f.data, "the file before it, if there was one, is kept beside it"
	if f.data != "" {
		err = toDirectory(f.data, file)
	} else {
		note = "each bucket keeps the lower of its current and its backed-up balance"
		place, err = f.intoRunning(ctx, file, s.Bytes, progress)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s holds %s: %s; %s\n%s\n", place, path, contents(&s), took(begin), note)
	return command.Failed(err)
}

// toDirectory restores where no service runs.
func toDirectory(dir string, file io.Reader) error {
	err := datafile.Restore(dir, file)
	if _, inUse := errors.AsType[*datafile.InUseError](err); inUse {
		if path, pathErr := filepath.Abs(filepath.Join(dir, server.SocketName)); pathErr == nil {
			err = fmt.Errorf("%w; or restore into the running service with --server unix://%s", err, path)
		}
	}
	return command.Failed(err)
}

// intoRunning restores into a running service, and returns which.
func (f *restoreFlags) intoRunning(ctx context.Context, file io.Reader, bytes int64, progress io.Writer) (server string, err error) {
	if err := f.find(ctx, "", f.config); err != nil {
		return "", err
	}
	return f.server, f.upload(ctx, file, bytes, progress)
}

// upload sends a backup.
func (f *restoreFlags) upload(ctx context.Context, file io.Reader, bytes int64, progress io.Writer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url("/v1/restore"), io.TeeReader(file, newMeter(progress, "sent")))
	if err != nil {
		return fmt.Errorf("--server: %w", err)
	}
	req.ContentLength = bytes
	req.Header.Set("Content-Type", admin.BackupType)
	resp, err := f.do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	const line = admin.Restored + "\n"
	answer, err := io.ReadAll(io.LimitReader(resp.Body, int64(len(line))))
	if err != nil {
		return command.Failed(fmt.Errorf("the answer of the service was cut off, and the backup may be restored: %w", err))
	}
	if string(answer) != line {
		return command.Failed(fmt.Errorf("%s does not answer like this service: nothing says that the backup is restored", req.URL.Redacted()))
	}
	return nil
}
