package admin

import (
	"math"
	"net"
	"syscall"
)

// peerUID returns the uid of the process that opened a connection over a Unix socket, as the kernel
// has it from then.
func peerUID(c net.Conn) (uid uint32, ok bool) {
	socket, isUnix := c.(*net.UnixConn)
	if !isUnix {
		return 0, false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, false
	}
	var peer *syscall.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		peer, failed = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED) // #nosec G115 -- a descriptor is small
	})
	if err != nil || failed != nil || peer.Uid == math.MaxUint32 { // the kernel's "none"
		return 0, false
	}
	return peer.Uid, true
}
