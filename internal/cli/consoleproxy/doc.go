// Package consoleproxy lets a browser of this machine use the console of a service with the credential
// of a command.
//
// A [Proxy] answers on a loopback address. The page and its files are for any caller. All other
// requests need a cookie, the session of the proxy. They go to the service with the credential of the
// command, which the browser never has. A browser gets the session once, for the token in the
// fragment of [Proxy.Link]: the token is good for one login, within [LoginTime].
//
//	POST /console/login    {"token": "…"}: 204 and the cookie; 401 for a token that is wrong, used or too old
//	GET  /console/session  204 with the session, 401 without it; a service itself answers 404
//
// Pages of other sites are refused by the headers Host, Origin and Sec-Fetch-Site.
package consoleproxy
