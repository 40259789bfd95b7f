package config

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// Admin is the listener of administration: backup, restore, and changes of state.
type Admin struct {
	// Address is "unix:" and a path, relative to the working directory of the program,
	// host:port, or AdminOff. "" = the socket admin.sock in the data directory; without
	// one, in the run directory; default "".
	Address string
	TLS     TLS
	Tokens  []AdminToken // which callers of host:port are let in; default none
}

// AdminOff is the address that turns the listener off.
const AdminOff = "off"

// AdminToken is a token that lets a caller in.
type AdminToken struct {
	Name string // of the principal
	Role AdminRole
	Hash string // SHA-256 of the token: "sha256:" and 64 hexadecimal digits
}

// AdminRole says which requests a caller may make.
type AdminRole string

// The roles, the least first; each includes the ones before it.
const (
	AdminRead       AdminRole = "read"
	AdminOperate    AdminRole = "operate"
	AdminAdminister AdminRole = "administer"
)

// Socket returns the path of a Unix socket that Address names.
func (a *Admin) Socket() (path string, ok bool) { return strings.CutPrefix(a.Address, "unix:") }

// Check reports mistakes of the listener as a whole. A listener at host:port asks every caller for
// a credential, and never lets the caller send it in plain text over a network.
func (a *Admin) Check() error {
	path, socket := a.Socket()
	switch {
	case socket && path == "":
		return fmt.Errorf("address %q needs a path, such as unix:/run/ratelimit/admin.sock", a.Address)
	case socket || a.Address == "" || a.Address == AdminOff:
		return nil
	}
	host, _, err := net.SplitHostPort(a.Address)
	switch {
	case err != nil:
		return fmt.Errorf("address is %q; it must be unix:PATH, host:port or off", a.Address)
	case len(a.Tokens) == 0 && a.TLS.ClientCA == "":
		return fmt.Errorf("at %s callers need a credential: give tokens, or tls with client_ca; or leave address out, for a Unix socket", a.Address)
	case !a.TLS.Enabled() && !IsLoopback(host):
		return fmt.Errorf("at %s tokens could be read on the network: give tls, or a loopback address such as 127.0.0.1", a.Address)
	}
	return nil
}

// IsLoopback reports whether a host, given as a name or an address, belongs to this machine alone.
func IsLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback() || host == "localhost" || strings.HasSuffix(host, ".localhost")
}
