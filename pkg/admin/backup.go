package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
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
	// on this machine cannot send it to another site by itself.
	BackupType = "application/vnd.ratelimit.backup"
	// BackupError is the trailer that says why a backup is not complete.
	BackupError = "Ratelimit-Backup-Error"
)

// stalled is how long a client may take for a part of a backup: while one is read the
// file cannot use its free space again.
const stalled = 30 * time.Second

// archive answers /v1/backup and /v1/restore.
type archive struct{ store Archive }

// local calls next for callers on this machine, if there is anything to copy.
func (a archive) local(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !fromHere(r):
			http.Error(w, "a backup holds everything, secrets too: only callers on this machine, who come to a loopback address and through no proxy, are answered", http.StatusForbidden)
		case a.store == nil:
			http.Error(w, "this service keeps nothing in a file that could be copied: serve --data DIR does", http.StatusNotFound)
		default:
			next(w, r)
		}
	}
}

// fromHere reports whether a caller is on this machine: a proxy here speaks for others,
// and a name that is not this machine's was made up for a browser.
func fromHere(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !peer.Addr().Unmap().IsLoopback() {
		return false
	}
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "Via", "Origin"} {
		if len(r.Header.Values(name)) > 0 {
			return false
		}
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

func (a archive) backup(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", BackupType)
	w.Header().Set("Trailer", BackupError)
	w.Header().Set("Connection", "close") // the deadlines are for this answer
	out := &patient{w: w, control: http.NewResponseController(w)}
	if _, err := a.store.Backup(out); err != nil {
		if !out.begun {
			w.Header().Del("Trailer")
			http.Error(w, err.Error(), statusOf(err))
			return
		}
		w.Header().Set(BackupError, err.Error())
	}
}

// patient writes to a client for as long as it reads.
type patient struct {
	w       io.Writer
	control *http.ResponseController
	begun   bool
}

// Write implements io.Writer.
func (p *patient) Write(b []byte) (int, error) {
	p.begun = true
	if err := p.control.SetWriteDeadline(time.Now().Add(stalled)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	return p.w.Write(b)
}

func (a archive) restore(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Content-Type") != BackupType {
		http.Error(w, "the body must be a backup, and the Content-Type "+BackupType, http.StatusUnsupportedMediaType)
		return
	}
	if err := a.store.Restore(r.Context(), r.Body); err != nil {
		http.Error(w, err.Error(), statusOf(err))
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
