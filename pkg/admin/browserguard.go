package admin

import (
	"mime"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// guard protects the answers of a listener from pages in a browser on the same machine or network.
type guard struct {
	hosts    []string // names that requests may be addressed to
	loopback bool     // the listener has a loopback address
}

// OnlyAddresses returns a handler that refuses requests to a listener with a loopback address that are addressed to a
// name other than localhost.
func OnlyAddresses(next http.Handler, loopback bool) http.Handler {
	return guard{loopback: loopback}.onlyOwnHosts(next)
}

// onlyOwnHosts refuses requests that are addressed to a name of another party. A page can make its
// own name resolve to a loopback address, and then has the same origin.
func (g guard) onlyOwnHosts(next http.Handler) http.Handler {
	if !g.loopback && len(g.hosts) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.isOwnHost(r.Host) {
			writeError(w, http.StatusMisdirectedRequest,
				"the Host of the request is neither an IP address nor localhost, nor one of server.http.hosts: add it there if clients use it")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isOwnHost reports whether a Host is an address, localhost or a configured name. Other names could
// resolve to this machine for a page of another party.
func (g guard) isOwnHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	// A client of HTTP/1.0 sends none; a browser always does.
	return host == "" || host == "localhost" || strings.HasSuffix(host, ".localhost") ||
		slices.ContainsFunc(g.hosts, func(name string) bool { return strings.EqualFold(name, host) })
}

// sameSite passes requests that are not from a page of another site: browsers say of each request but GET
// from which site it comes.
func sameSite(next http.Handler) http.Handler {
	protection := new(http.CrossOriginProtection)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := protection.Check(r); err != nil {
			writeError(w, http.StatusForbidden, "requests of pages of another site are refused: "+err.Error())
			return
		}
		next.ServeHTTP(w, r)
	})
}

// jsonOnly passes calls in JSON. A page can send other types without asking first.
func jsonOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if r.Method == http.MethodPost && (err != nil || kind != "application/json") {
			writeError(w, http.StatusUnsupportedMediaType, "send JSON, with the header Content-Type: application/json")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func writeError(w http.ResponseWriter, code int, text string) {
	writeJSON(w, code, map[string]string{"error": text})
}
