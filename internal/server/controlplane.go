package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

// controlPlane joins the rules of the files with those of a control plane.
type controlPlane struct {
	mu      sync.Mutex
	files   *config.Config          // the last configuration of the files
	domains []descriptor.DomainSpec // of the control plane
	known   bool                    // it has sent some, or the file had

	first     chan struct{} // closed with known
	connected prometheus.Gauge
	updates   *prometheus.CounterVec
	stop      context.CancelFunc
	done      chan struct{}
}

// rulesFile is where a data directory has the last rules.
const rulesFile = "xds.pb"

// followControlPlane begins to follow the control plane of the configuration, if there is one. Close ends that.
func (s *Service) followControlPlane(ctx context.Context) error {
	p := &s.control
	if s.cfg.XDS.Address == "" {
		return nil
	}
	p.connected = prometheus.NewGauge(prometheus.GaugeOpts{Name: "ratelimit_xds_connected", Help: "1 while the control plane answers, else 0."})
	p.updates = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ratelimit_xds_updates_total", Help: "Answers of the control plane, by result: applied or refused."}, []string{"result"})
	if err := errors.Join(s.Registry.Register(p.connected), s.Registry.Register(p.updates)); err != nil {
		return err
	}
	client := &xdsClient{Config: s.cfg.XDS, Log: s.log, Apply: s.applyDomains, Connected: func(on bool) {
		p.connected.Set(0)
		if on {
			p.connected.Set(1)
		}
	}}
	if s.cfg.Store.Type == config.StoreEmbedded && s.cfg.Store.Embedded.Data != "" {
		client.File = filepath.Join(s.cfg.Store.Embedded.Data, rulesFile)
	}
	ctx, p.stop = context.WithCancel(context.WithoutCancel(ctx))
	p.done = make(chan struct{})
	client.Recall(ctx)
	go func() {
		defer close(p.done)
		client.Run(ctx)
	}()
	return nil
}

// close ends the stream to the control plane.
func (p *controlPlane) close() {
	if p.stop != nil {
		p.stop()
		<-p.done
	}
}

// await waits for the first rules, unless calls may come before.
func (p *controlPlane) await(ctx context.Context, cfg *config.XDS, log *slog.Logger) error {
	if cfg.Address == "" || cfg.Early {
		return nil
	}
	select {
	case <-p.first:
		return nil
	default:
	}
	log.InfoContext(ctx, "nothing listens until the control plane has sent rules", "address", cfg.Address)
	select {
	case <-p.first:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// applyDomains puts the domains of the control plane in force, or returns why they cannot be used. problem is why its
// answer has none.
func (s *Service) applyDomains(ctx context.Context, domains []descriptor.DomainSpec, problem error) error {
	p := &s.control
	p.mu.Lock()
	defer p.mu.Unlock()
	before, known, err := p.domains, p.known, problem
	if err == nil {
		p.domains, p.known = domains, true
		err = s.putInForce(ctx, p.files, admin.FromControlPlane)
	}
	if err != nil {
		p.domains, p.known = before, known
		p.updates.WithLabelValues("refused").Inc()
		s.refused(admin.FromControlPlane, "the rules of the control plane cannot be used; the log has the reason")
		return err
	}
	p.updates.WithLabelValues("applied").Inc()
	s.events.Record(api.EventReload, fmt.Sprintf("New rules of the control plane are in force: %d domains.", len(domains)))
	if !known {
		close(p.first)
	}
	return nil
}

// problemsError says why domains of a control plane cannot be used.
type problemsError []descriptor.Problem

func (e problemsError) Error() string {
	texts := make([]string, len(e))
	for i, p := range e {
		texts[i] = p.Path + ": " + p.Text
	}
	return strings.Join(texts, "; ")
}

// join returns the configuration of the files with the domains of the control plane.
func (p *controlPlane) join(ctx context.Context, cfg *config.Config, log *slog.Logger) (*config.Config, error) {
	if cfg.XDS.Address == "" {
		return cfg, nil
	}
	with, taken, problems := cfg.WithDomains(p.domains)
	if len(problems) > 0 {
		return nil, problemsError(problems)
	}
	if len(taken) > 0 {
		log.WarnContext(ctx, "domains of the control plane take the place of those of the files", "domains", taken)
	}
	return with, nil
}
