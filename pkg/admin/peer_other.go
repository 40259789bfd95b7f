//go:build !linux

package admin

import "net"

// peerUID is not known on this system.
func peerUID(net.Conn) (uid uint32, ok bool) { return 0, false }
