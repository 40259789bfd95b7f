package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Defaults of a [WebhookConfig].
const (
	DefaultQueue    = 1000
	DefaultCalls    = 8
	DefaultTimeout  = 10 * time.Second
	DefaultDelivery = 3 * time.Minute
	DefaultPause    = time.Second
	longestPause    = time.Minute
)

const (
	// lastCalls bounds the time in which the calls of a queue are made once Run is to end.
	lastCalls = 500 * time.Millisecond
	// lastPause is the longest pause then.
	lastPause = 200 * time.Millisecond
)

// senders is how many events are sent at once, so that a call that hangs holds up no other event. Half of them
// send no shared event while a webhook runs.
const senders = 8

// mostReply is how much of an answer is read, so that the connection can be used again.
const mostReply = 64 << 10

// WebhookConfig configures a webhook. URL and Key must be set.
type WebhookConfig struct {
	URL       string
	Key       []byte            // signs calls
	Transport http.RoundTripper // nil = http.DefaultTransport
	Queue     int               // most events that wait of each kind, shared and own; 0 = DefaultQueue
	Calls     int               // most calls for an event; 0 = DefaultCalls
	Timeout   time.Duration     // of a call; 0 = DefaultTimeout
	Delivery  time.Duration     // of all calls for an event, with their pauses; 0 = DefaultDelivery
	Pause     time.Duration     // after the first call that failed; it doubles, up to a minute; 0 = DefaultPause
	Logger    *slog.Logger      // for lines about dropped events; nil = none
}

// Webhook sends events. It is safe for concurrent use.
type Webhook struct {
	cfg    WebhookConfig
	client *http.Client
	own    chan limiter.BudgetEvent // of budgets that an entity has for itself
	shared chan limiter.BudgetEvent // of the others: clients may have invented their entities
	lines  sampled                  // about calls that failed, and events that were dropped

	sent, failed, dropped atomic.Int64
}

// AlertStats counts the calls of a webhook since it was made.
type AlertStats struct {
	Sent    int64 // events that the receiver has accepted
	Failed  int64 // calls that failed
	Dropped int64 // events that were not delivered, and will not be
	Queued  int64 // events that wait now
}

// NewWebhook returns a webhook, which sends while [Webhook.Run] runs.
func NewWebhook(cfg WebhookConfig) *Webhook {
	cfg.Queue = cmp.Or(max(cfg.Queue, 0), DefaultQueue)
	cfg.Calls = cmp.Or(max(cfg.Calls, 0), DefaultCalls)
	cfg.Timeout = cmp.Or(max(cfg.Timeout, 0), DefaultTimeout)
	cfg.Delivery = cmp.Or(max(cfg.Delivery, 0), DefaultDelivery)
	cfg.Pause = cmp.Or(max(cfg.Pause, 0), DefaultPause)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	client := &http.Client{
		Transport: cfg.Transport, Timeout: cfg.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the signature is for one receiver
	}
	return &Webhook{
		cfg: cfg, client: client,
		own: make(chan limiter.BudgetEvent, cfg.Queue), shared: make(chan limiter.BudgetEvent, cfg.Queue),
	}
}

// Stats counts the calls so far. A nil webhook has none.
func (w *Webhook) Stats() AlertStats {
	if w == nil {
		return AlertStats{}
	}
	return AlertStats{Sent: w.sent.Load(), Failed: w.failed.Load(), Dropped: w.dropped.Load(), Queued: int64(len(w.own) + len(w.shared))}
}

// Send puts an event in its queue, or drops it where the queue is full. It does not wait.
func (w *Webhook) Send(e limiter.BudgetEvent) {
	queue := w.own
	if e.Shared {
		queue = w.shared
	}
	select {
	case queue <- e:
	default:
		w.drop(&e, errors.New("the queue is full"))
	}
}

// Run sends events until ctx is done, and then those of the queues, for at most 1 s in all. It drops the
// rest. It is called once.
func (w *Webhook) Run(ctx context.Context) {
	calls, end := outliving(ctx)
	defer end()
	var all sync.WaitGroup
	for i := range senders {
		shared := w.shared
		if i%2 == 0 {
			shared = nil
		}
		all.Go(func() {
			for ctx.Err() == nil {
				select {
				case <-ctx.Done():
				case e := <-w.own:
					w.deliver(ctx, calls, &e)
				case e := <-shared:
					w.deliver(ctx, calls, &e)
				}
			}
		})
	}
	all.Wait()
	w.empty(ctx, calls)
}

// Flush sends the events of the queues, and drops those that are not delivered when ctx is done. It takes the place
// of [Webhook.Run] in a program that may not go on behind its back.
func (w *Webhook) Flush(ctx context.Context) { w.empty(ctx, ctx) }

// empty sends the events that wait, the own ones first.
func (w *Webhook) empty(ctx, calls context.Context) {
	for _, queue := range []chan limiter.BudgetEvent{w.own, w.shared} {
		var all sync.WaitGroup
		for range min(senders, len(queue)) {
			all.Go(func() {
				for {
					select {
					case e := <-queue:
						w.deliver(ctx, calls, &e)
					default:
						return
					}
				}
			})
		}
		all.Wait()
	}
}

// outliving returns a context that ends some time after another one.
func outliving(ctx context.Context) (outlives context.Context, end func()) {
	outlives, cancel := context.WithCancel(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(lastCalls):
			cancel()
		case <-outlives.Done():
		}
	})
	return outlives, func() {
		unhook()
		cancel()
	}
}

// deliver calls until the receiver accepts or refuses the event, or the calls are used up, or their context is
// done. It makes one call at least. Once ctx is done the pauses are short.
func (w *Webhook) deliver(ctx, calls context.Context, e *limiter.BudgetEvent) {
	calls, end := context.WithTimeout(calls, w.cfg.Delivery)
	defer end()
	pause := w.cfg.Pause
	for call := 1; ; call++ {
		again, err := w.call(calls, e)
		if err == nil {
			w.sent.Add(1)
			return
		}
		if !again || call == w.cfg.Calls || calls.Err() != nil {
			w.drop(e, err)
			return
		}
		if attrs, ok := w.lines.due(e.Shared, "event", e.ID(), "call", call, "pause", pause, "error", err); ok {
			w.cfg.Logger.WarnContext(calls, "a webhook call failed and is made again", attrs...)
		}
		if ctx.Err() == nil {
			wait(ctx, calls, pause)
			pause = min(2*pause, longestPause)
		} else {
			wait(calls, calls, min(pause, lastPause))
		}
		if calls.Err() != nil {
			w.drop(e, err)
			return
		}
	}
}

// call makes a call. again says whether another one may help.
func (w *Webhook) call(ctx context.Context, e *limiter.BudgetEvent) (again bool, err error) {
	defer func() {
		if err != nil {
			w.failed.Add(1)
		}
	}()
	body, err := encode(e)
	if err != nil {
		return false, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.cfg.URL, bytes.NewReader(body))
	if err != nil {
		return false, errors.New("the URL is none") // the error would have it, and it may be a secret
	}
	timestamp := strconv.FormatInt(time.Now().Unix(), 10)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "ratelimit")
	r.Header.Set(TimestampHeader, timestamp)
	r.Header.Set(SignatureHeader, "v1="+SignAlert(w.cfg.Key, timestamp, body))
	reply, err := w.client.Do(r)
	if err != nil {
		return true, reason(err)
	}
	defer func() { _ = reply.Body.Close() }()
	_, _ = io.CopyN(io.Discard, reply.Body, mostReply)
	code := reply.StatusCode
	if code/100 == 2 {
		return false, nil
	}
	again = code >= http.StatusInternalServerError || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout
	return again, fmt.Errorf("the receiver answered %d", code)
}

// reason returns an error without the URL, which may be a secret.
func reason(err error) error {
	if at, ok := errors.AsType[*url.Error](err); ok {
		return at.Err
	}
	return err
}

// drop notes that an event is not delivered.
func (w *Webhook) drop(e *limiter.BudgetEvent, err error) {
	w.dropped.Add(1)
	if attrs, ok := w.lines.due(e.Shared, "event", e.ID(), "error", err); ok {
		w.cfg.Logger.Error("a budget event is dropped and not sent to the webhook", attrs...)
	}
}

// wait waits until one of the contexts is done, or a pause is over: that or up to a fifth more.
func wait(ctx, calls context.Context, pause time.Duration) {
	select {
	case <-time.After(pause + rand.N(pause/5+1)): // #nosec G404 -- no secret
	case <-ctx.Done():
	case <-calls.Done():
	}
}
