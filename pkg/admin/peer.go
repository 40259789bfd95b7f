package admin

import (
	"context"
	"os/user"
	"strconv"
	"strings"
	"sync"

	"github.com/ratelimit/ratelimit/pkg/api"
)

// isSocketName reports whether a name is that of a caller over the Unix socket.
func isSocketName(name string) bool {
	return name == SocketPrincipal || strings.HasPrefix(name, SocketPrincipal+":")
}

// peerKey is the key of the uid of a connection's other end in its context.
type peerKey struct{}

// maxUserNames bounds the names of users that are kept.
const maxUserNames = 1000

// userNames are the names of users of this machine by their uids. The zero value has none yet. It
// is safe for concurrent use.
type userNames struct {
	mu    sync.Mutex
	names map[uint32]string
}

// principal returns the name of the caller over the Unix socket whose connection has the context:
// socket and the user, or the uid of a user without a name. It is SocketPrincipal where the system
// does not tell the user.
func (u *userNames) principal(ctx context.Context) string {
	uid, ok := ctx.Value(peerKey{}).(uint32)
	if !ok {
		return SocketPrincipal
	}
	return SocketPrincipal + ":" + u.of(uid)
}

// of returns the name of a user. A name is looked up once, so that a directory service is not asked
// for each request.
func (u *userNames) of(uid uint32) string {
	u.mu.Lock()
	name, ok := u.names[uid]
	u.mu.Unlock()
	if ok {
		return name
	}
	number := strconv.FormatUint(uint64(uid), 10)
	found, err := user.LookupId(number)
	if err != nil || found.Username == "" {
		return number
	}
	name = api.Name(found.Username).String()
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.names == nil || len(u.names) >= maxUserNames {
		u.names = make(map[uint32]string)
	}
	u.names[uid] = name
	return name
}
