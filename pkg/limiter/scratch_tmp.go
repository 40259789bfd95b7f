package limiter

type scratch struct{}
