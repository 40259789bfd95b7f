package envoytest

import (
	"net/http"
	"os"
	"testing"

	"github.com/ratelimit/ratelimit/test/kit/proctest"
)

// Upstream is the running program examples/upstream, which answers as an LLM
// provider does.
type Upstream struct {
	Address string // host:port
	http    *http.Client
}

// StartUpstream starts examples/upstream and waits until it answers.
func StartUpstream(tb testing.TB) *Upstream {
	tb.Helper()
	u := &Upstream{Address: proctest.FreeAddress(tb), http: newClient(tb)}
	p := startProcess(tb, "upstream", os.Getenv(upstreamVariable), "--address", u.Address)
	Await(tb, "the upstream answers", func() error {
		if !p.running() {
			tb.Fatalf("the upstream ended: %v", p.err)
		}
		response, err := u.http.Get("http://" + u.Address + "/")
		if err != nil {
			return err
		}
		return response.Body.Close()
	})
	return u
}

// Release lets answers go on that wait by x-hold.
func (u *Upstream) Release(tb testing.TB, name string) {
	tb.Helper()
	response, err := u.http.Post("http://"+u.Address+"/release/"+name, "", http.NoBody)
	if err != nil {
		tb.Fatalf("release %s: %v", name, err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusNoContent {
		tb.Fatalf("release %s: got %s, want 204", name, response.Status)
	}
}
