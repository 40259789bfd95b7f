package command

import (
	"context"
	"slices"
	"time"
)

// endTime bounds the time in which a command closes everything that it opened.
const endTime = 5 * time.Second

type endKey struct{}

// ends are the functions that close everything that a command opened.
type ends struct{ all []func(context.Context) }

// WithEnd returns a context in which atEnd works. end calls the functions, the last first.
func WithEnd(ctx context.Context) (_ context.Context, end func()) {
	e := new(ends)
	return context.WithValue(ctx, endKey{}, e), func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
		defer cancel()
		for _, f := range slices.Backward(e.all) {
			f(ctx)
		}
	}
}

// AtEnd has a function called when the command has ended. It is not safe for concurrent use.
func AtEnd(ctx context.Context, f func(context.Context)) {
	if e, ok := ctx.Value(endKey{}).(*ends); ok {
		e.all = append(e.all, f)
	}
}
