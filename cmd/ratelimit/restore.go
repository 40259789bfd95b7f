package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
)

type restoreFlags struct {
	client
	data string
}

func newRestore() *cobra.Command {
	var f restoreFlags
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Put a backup in the place of a data directory's file, or into a running service",
		Long: `restore puts back what ratelimit backup has copied. The copy is checked before anything
changes.

With --data it takes the place of the directory's file, which is kept beside it under
another name. No service may have the directory open. Buckets then begin with what they
held at the time of the backup and the refill since, up to their capacity: what was
taken since the backup is not known.

With --server a running service takes it while it serves; the command must run on its
machine. Entities, limits, audit and usage become those of the backup, all at once.
Buckets keep the lesser of what they hold and what the backup knows of, so that a
restore gives nobody tokens. Secrets stay.`,
		Example: `  ratelimit restore --data /var/lib/ratelimit ratelimit-20260102T030405Z.backup
  ratelimit restore --server http://127.0.0.1:8080 ratelimit-20260102T030405Z.backup`,
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
	f.flags(cmd, "")
	cmd.Flags().StringVar(&f.data, "data", "", "data directory of a service that does not run")
	return cmd
}

func (f *restoreFlags) restore(ctx context.Context, path string, stdout, progress io.Writer) error {
	begin := time.Now()
	if (f.data == "") == (f.server == "") {
		return errors.New("say where to restore to, one of: --data DIR, when no service has it open, or --server URL, into a running one")
	}
	file, err := os.Open(path) //nolint:gosec // the path is the operator's
	if err != nil {
		return failed(err)
	}
	defer file.Close() //nolint:errcheck // nothing was written through it
	s, err := datafile.Verify(path)
	if err != nil {
		return failed(fmt.Errorf("the backup cannot be restored: %w", err))
	}
	place, note := f.server, "buckets keep the lesser of what they hold and what the backup knows of"
	if f.data != "" {
		place, note = f.data, "the file before it, if there was one, is kept beside it"
		err = toDirectory(f.data, file)
	} else {
		err = f.upload(ctx, file, s.Bytes, progress)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s holds %s: %s; %s\n%s\n", place, path, contents(&s), took(begin), note)
	return failed(err)
}

// toDirectory restores where no service runs.
func toDirectory(dir string, file io.Reader) error {
	err := datafile.Restore(dir, file)
	if _, inUse := errors.AsType[*datafile.InUseError](err); inUse {
		err = fmt.Errorf("%w; or restore into the running service with --server", err)
	}
	return failed(err)
}

// upload restores into a running service.
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
	return failed(resp.Body.Close())
}
