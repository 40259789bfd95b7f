package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Archive is a store that can be copied and restored while it serves.
type Archive interface {
	// Backup writes a copy of everything, secrets too, and returns its size in bytes.
	Backup(w io.Writer) (int64, error)
	// Restore replaces the content of the store by a copy. No balance gains tokens by it.
	Restore(ctx context.Context, from io.Reader) error
}

const (
	// BackupType is the media type of a backup. Restore requires it, as a page in a browser cannot
	// send it to another site by itself.
	BackupType = "application/vnd.ratelimit.backup"
	// BackupError is the trailer with the reason why a backup is not complete.
	BackupError = "Ratelimit-Backup-Error"
	// Restored is the line of the answer to a restore that was made.
	Restored = "restored"
)

// During a backup the file cannot reuse its free space, and during a restore there can be no other.
// So stalled clients are disconnected.
const (
	stalled    = 30 * time.Second // the longest that a client takes for a part
	slowest    = 64 << 10         // the lowest average rate of a client after the first part, in bytes a second
	maxBackups = 4                // at once
	maxRestore = 256 << 30        // the most bytes of a backup, above the size of any store
)

// archive answers /v1/backup and /v1/restore.
type archive struct {
	store Archive
	none  string        // why there is nothing to copy
	slots chan struct{} // one for each backup at once
}

func newArchive(store Archive, uncopied string) *archive {
	none := "this service has no data file to copy: " + cmp.Or(uncopied, "it would need serve --data DIR")
	return &archive{store: store, none: none, slots: make(chan struct{}, maxBackups)}
}

// empty refuses the request when there is nothing to copy.
func (a *archive) empty(w http.ResponseWriter) bool {
	if a.store == nil {
		writeProblem(w, http.StatusNotFound, a.none)
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
	out := &pacedTransfer{w: w, r: http.NoBody, control: http.NewResponseController(w), begin: time.Now()}
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

// pacedTransfer transfers a backup to or from a client that keeps up the pace.
type pacedTransfer struct {
	w       io.Writer
	r       io.Reader
	control *http.ResponseController
	begin   time.Time
	bytes   int64 // transferred
}

// deadline returns the time by which the next part must be transferred.
func (p *pacedTransfer) deadline(now time.Time) time.Time {
	pace := p.begin.Add(stalled + time.Duration(p.bytes/slowest)*time.Second)
	if next := now.Add(stalled); next.Before(pace) {
		return next
	}
	return pace
}

func (*pacedTransfer) extend(set func(time.Time) error, to time.Time) error {
	if err := set(to); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// Write implements io.Writer.
func (p *pacedTransfer) Write(b []byte) (int, error) {
	if err := p.extend(p.control.SetWriteDeadline, p.deadline(time.Now())); err != nil {
		return 0, err
	}
	n, err := p.w.Write(b)
	p.bytes += int64(n)
	return n, err
}

// Read implements io.Reader.
func (p *pacedTransfer) Read(b []byte) (int, error) {
	if err := p.extend(p.control.SetReadDeadline, p.deadline(time.Now())); err != nil {
		return 0, err
	}
	n, err := p.r.Read(b)
	p.bytes += int64(n)
	if errors.Is(err, io.EOF) { // the rest of the time is the service's
		_ = p.extend(p.control.SetReadDeadline, time.Time{})  // an error says that the client has gone
		_ = p.extend(p.control.SetWriteDeadline, time.Time{}) // likewise
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
	in := &pacedTransfer{w: io.Discard, r: r.Body, control: http.NewResponseController(w), begin: time.Now()}
	if err := a.store.Restore(r.Context(), in); err != nil {
		writeProblem(w, statusOf(err), err.Error())
		return
	}
	_, _ = fmt.Fprintln(w, Restored) // an error says that the client has gone
}

func statusOf(err error) int {
	if errors.Is(err, limiter.ErrInvalid) {
		return http.StatusBadRequest
	}
	return http.StatusServiceUnavailable
}
