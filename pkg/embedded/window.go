package embedded

import (
	"unique"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// window is that of a bucket: many share one. The zero window is that of a bucket for all time.
type window struct{ shared unique.Handle[limiter.Window] }

func newWindow(w limiter.Window) window {
	if w == (limiter.Window{}) {
		return window{}
	}
	return window{unique.Make(w)}
}

func (w window) value() limiter.Window {
	if w == (window{}) {
		return limiter.Window{}
	}
	return w.shared.Value()
}
