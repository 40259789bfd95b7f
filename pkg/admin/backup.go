package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Archive is a store that can be copied, and put back, while it serves.
type Archive interface {
	// Backup writes a copy of everything, secrets too, and returns its size in bytes.
	Backup(w io.Writer) (int64, error)
	// Restore puts what a copy holds in the place of what there is. It gives nobody tokens.
	Restore(ctx context.Context, from io.Reader) error
}

const (
	// BackupType is the media type of a backup. Restore wants it: a page in a browser
	// cannot send it to another site by itself.
	BackupType = "application/vnd.ratelimit.backup"
	// BackupError is the trailer that says why a backup is not complete.
	BackupError = "Ratelimit-Backup-Error"
)

// While a backup is read the file cannot use its free space again, and while one is
// restored no other can be. So clients that stall are left.
const (
	stalled    = 30 * time.Second // the longest that a client takes for a part
	slowest    = 64 << 10         // bytes a second that it takes on average, after the first part
	maxBackups = 4                // at once
	maxRestore = 256 << 30        // bytes of a backup, more than the most buckets need
)

// archive answers /v1/backup and /v1/restore.
type archive struct {
	store Archive
	slots chan struct{} // one for each backup at once
}

func newArchive(store Archive) *archive {
	return &archive{store: store, slots: make(chan struct{}, maxBackups)}
}

// empty answers where there is nothing to copy.
func (a *archive) empty(w http.ResponseWriter) bool {
	if a.store == nil {
		writeProblem(w, http.StatusNotFound, "this service keeps nothing in a file that could be copied: serve --data DIR does")
	}
	return a.store == nil
}

func (a *archive) backup(w http.ResponseWriter, _ *http.Request) {
	if a.empty(w) {
		return
	}
	select {
	case a.slots <- struct{}{}:
		defer func() { <-a.slots }()
	default:
		writeProblem(w, http.StatusServiceUnavailable, fmt.Sprintf("%d backups are being read already: try again later", maxBackups))
		return
	}
	w.Header().Set("Content-Type", BackupType)
	w.Header().Set("Trailer", BackupError)
	w.Header().Set("Connection", "close") // the deadlines are for this answer
	out := &patient{w: w, r: http.NoBody, control: http.NewResponseController(w), begin: time.Now()}
	if err := out.extend(out.control.SetReadDeadline, time.Time{}); err != nil {
		writeProblem(w, http.StatusInternalServerError, err.Error())
		return
	}
	if _, err := a.store.Backup(out); err != nil {
		if out.bytes == 0 {
			w.Header().Del("Trailer")
			writeProblem(w, statusOf(err), err.Error())
			return
		}
		w.Header().Set(BackupError, err.Error())
	}
}

// patient transfers a backup to or from a client for as long as that keeps pace.
type patient struct {
	w       io.Writer
	r       io.Reader
	control *http.ResponseController
	begin   time.Time
	bytes   int64 // transferred
}

// deadline returns when the next part must be through.
func (p *patient) deadline(now time.Time) time.Time {
	pace := p.begin.Add(stalled + time.Duration(p.bytes/slowest)*time.Second)
	if next := now.Add(stalled); next.Before(pace) {
		return next
	}
	return pace
}

func (*patient) extend(set func(time.Time) error, to time.Time) error {
	if err := set(to); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// Write implements io.Writer.
func (p *patient) Write(b []byte) (int, error) {
	if err := p.extend(p.control.SetWriteDeadline, p.deadline(time.Now())); err != nil {
		return 0, err
	}
	n, err := p.w.Write(b)
	p.bytes += int64(n)
	return n, err
}

// Read implements io.Reader.
func (p *patient) Read(b []byte) (int, error) {
	if err := p.extend(p.control.SetReadDeadline, p.deadline(time.Now())); err != nil {
		return 0, err
	}
	n, err := p.r.Read(b)
	p.bytes += int64(n)
	if errors.Is(err, io.EOF) { // from here on it is the service's time
		_ = p.extend(p.control.SetReadDeadline, time.Time{})  // the client has gone, if it fails
		_ = p.extend(p.control.SetWriteDeadline, time.Time{}) // the same
	}
	return n, err
}

func (a *archive) restore(w http.ResponseWriter, r *http.Request) {
	if a.empty(w) {
		return
	}
	if r.Header.Get("Content-Type") != BackupType {
		writeProblem(w, http.StatusUnsupportedMediaType, "the body must be a backup, and the Content-Type "+BackupType)
		return
	}
	in := &patient{w: io.Discard, r: r.Body, control: http.NewResponseController(w), begin: time.Now()}
	if err := a.store.Restore(r.Context(), in); err != nil {
		writeProblem(w, statusOf(err), err.Error())
		return
	}
	_, _ = fmt.Fprintln(w, "restored") // the client went away: nobody to tell
}

func statusOf(err error) int {
	if errors.Is(err, limiter.ErrInvalid) {
		return http.StatusBadRequest
	}
	return http.StatusServiceUnavailable
}
