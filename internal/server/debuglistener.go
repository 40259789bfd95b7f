package server

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// debugHandler shows the limits in force, and the counters of envoyproxy/ratelimit, which has them on a port of its own.
func debugHandler(inForce func() *admin.InForce, stats func(each func(rls.Stat))) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /rlconfig", func(w http.ResponseWriter, _ *http.Request) { writeRules(w, inForce().Rules) })
	mux.HandleFunc("GET /stats", func(w http.ResponseWriter, _ *http.Request) {
		stats(func(s rls.Stat) {
			if s.Time == 0 {
				_, _ = fmt.Fprintf(w, "%s: %d\n", s.Name, s.Value) // an error says that the client has gone
			}
		})
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, "/rlconfig: the limits in force\n/stats: the counters of envoyproxy/ratelimit\n")
	})
	return mux
}

// writeRules writes each limit of the domains of envoyproxy/ratelimit files, and the names of other rules.
func writeRules(w http.ResponseWriter, rules *descriptor.Rules) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	units := map[time.Duration]string{
		time.Second: "SECOND", time.Minute: "MINUTE", time.Hour: "HOUR", 24 * time.Hour: "DAY", 7 * 24 * time.Hour: "WEEK", 30 * 24 * time.Hour: "MONTH", 365 * 24 * time.Hour: "YEAR",
	}
	for _, d := range rules.Domains() {
		for _, rule := range d.Rules() {
			of, ok := descriptor.Quote(rule)
			switch {
			case !ok:
				_, _ = fmt.Fprintf(w, "%s: rule %s\n", d.Name(), rule.Name()) // an error says that the client has gone
			case of.Unit > 0:
				_, _ = fmt.Fprintf(w, "%s.%s: unit=%s requests_per_unit=%d, shadow_mode: %t\n", d.Name(), strings.Join(of.Keys, "."), units[of.Unit], of.RequestsPerUnit, rule.Shadow())
			case rule.Unlimited() && len(of.Keys) > 0:
				_, _ = fmt.Fprintf(w, "%s.%s: unlimited\n", d.Name(), strings.Join(of.Keys, "."))
			}
		}
	}
}
