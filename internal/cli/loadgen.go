package cli

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// loadConfig says which load. Call and Workers are required.
type loadConfig struct {
	// Call makes a request of a worker for a key, and returns its result: a code in words.
	Call    func(ctx context.Context, worker, key int) string
	Workers int           // requests under way at a time
	Rate    int           // requests a second of all workers; 0 = each worker asks again as soon as it is answered
	For     time.Duration // how long; 0 = until Requests are made
	// Requests is how many requests are made; 0 = as many as fit into For.
	Requests int64
	Keys     int // number of keys; 0 = 1
	// Zipf draws the keys by Zipf's law, a few of them mostly; else each is as likely.
	Zipf bool
	// Silence is the result that says that nothing answers; "" = none does. Workers pause after it, and the load is over
	// where there is no other result for a second.
	Silence string
	// Progress is called each second with the answers so far; nil = not called.
	Progress func(answers int64, elapsed time.Duration)
}

// loadResult is the measurement, also of a load that was interrupted.
type loadResult struct {
	Elapsed time.Duration
	Codes   map[string]int64 // answers by result
	// Latency is the time from when a request was due until its answer came: with a Rate, a
	// request that had to wait for a worker counts from when it should have been sent.
	Latency loadHistogram
	Behind  int64 // requests of a Rate that were not made, since all workers waited for answers
}

// runLoad puts load until it is over or ctx ends.
func runLoad(ctx context.Context, cfg loadConfig) *loadResult {
	began := time.Now()
	if cfg.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cfg.For)
		defer cancel()
	}
	r := &runner{cfg: cfg, began: began}
	parts := make([]part, cfg.Workers)
	var workers sync.WaitGroup
	for i := range parts {
		workers.Go(func() { r.work(ctx, i, &parts[i]) })
	}
	stop := make(chan struct{})
	told := make(chan struct{})
	go func() {
		defer close(told)
		r.tell(stop)
	}()
	workers.Wait()
	close(stop)
	<-told
	return r.result(parts)
}

// runner is a load that runs.
type runner struct {
	cfg      loadConfig
	began    time.Time
	started  atomic.Int64 // requests that were begun, or are due
	answered atomic.Int64
	heard    atomic.Bool // there was an answer other than silence
}

// Times of a load that nothing answers.
const (
	silencePause    = 20 * time.Millisecond
	silencePatience = time.Second
)

// part is the measurement of one worker.
type part struct {
	codes   map[string]int64
	latency loadHistogram
}

func (r *runner) result(parts []part) *loadResult {
	out := &loadResult{Elapsed: time.Since(r.began), Codes: make(map[string]int64)}
	for i := range parts {
		for code, n := range parts[i].codes {
			out.Codes[code] += n
		}
		out.Latency.Merge(&parts[i].latency)
	}
	if r.cfg.Rate > 0 {
		due := int64(out.Elapsed.Seconds() * float64(r.cfg.Rate)) // of requests, not of tokens
		if r.cfg.Requests > 0 {
			due = min(due, r.cfg.Requests)
		}
		out.Behind = max(0, due-out.Latency.Count()-int64(r.cfg.Workers))
	}
	return out
}

// tell reports the progress each second.
func (r *runner) tell(stop <-chan struct{}) {
	if r.cfg.Progress == nil {
		return
	}
	ticks := time.NewTicker(time.Second)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			r.cfg.Progress(r.answered.Load(), time.Since(r.began))
		case <-stop:
			return
		}
	}
}

// work makes the requests of one worker.
func (r *runner) work(ctx context.Context, worker int, p *part) {
	p.codes = make(map[string]int64)
	random := rand.New(rand.NewPCG(uint64(worker), 1)) // #nosec G404 G115 -- a choice of keys is no secret, and a worker is not below 0
	var zipf *rand.Zipf
	if r.cfg.Zipf && r.cfg.Keys > 1 {
		zipf = rand.NewZipf(random, 1.1, 1, uint64(r.cfg.Keys-1)) // #nosec G115 -- above 0
	}
	for {
		n := r.started.Add(1)
		if r.cfg.Requests > 0 && n > r.cfg.Requests {
			return
		}
		due, ok := r.due(ctx, n)
		if !ok {
			return
		}
		key := 0
		switch {
		case zipf != nil:
			key = int(zipf.Uint64()) // #nosec G115 -- below Keys
		case r.cfg.Keys > 1:
			key = random.IntN(r.cfg.Keys)
		}
		code := r.cfg.Call(ctx, worker, key)
		if over(ctx) {
			return // its answer says nothing of the service
		}
		p.codes[code]++
		p.latency.Add(time.Since(due))
		r.answered.Add(1)
		if r.gone(ctx, code) {
			return
		}
	}
}

// gone reports whether nothing has answered for so long that the load is over. It pauses after a result that is silence.
func (r *runner) gone(ctx context.Context, code string) bool {
	if r.cfg.Silence == "" || code != r.cfg.Silence {
		r.heard.Store(true)
		return false
	}
	if !r.heard.Load() && time.Since(r.began) >= silencePatience {
		return true
	}
	select {
	case <-time.After(silencePause):
	case <-ctx.Done():
	}
	return false
}

// over reports whether a context has ended, or its deadline has passed: on a busy machine it
// ends some time after that, and gRPC goes by the deadline.
func over(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

// due waits until the n-th request is due, and returns when that was; false = the load is over.
func (r *runner) due(ctx context.Context, n int64) (time.Time, bool) {
	if ctx.Err() != nil {
		return time.Time{}, false
	}
	if r.cfg.Rate <= 0 {
		return time.Now(), true
	}
	due := r.began.Add(time.Duration((n - 1) * int64(time.Second) / int64(r.cfg.Rate)))
	wait := time.Until(due)
	if wait <= 0 {
		return due, true
	}
	select {
	case <-time.After(wait):
		return due, true
	case <-ctx.Done():
		return due, false
	}
}
