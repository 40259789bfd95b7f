package server

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
)

// dataPause is between two checks of the data file.
const dataPause = time.Second

// dataWatch notices when the data file is removed, or its directory moved, while the
// service runs. Decisions go on in memory and are exact. The service is not ready,
// because its state is lost at its end.
type dataWatch struct {
	present func() error // datafile.ErrGone when it is gone
	health  *admin.Health
	log     *slog.Logger
	missing atomic.Bool
}

func (w *dataWatch) register(reg prometheus.Registerer) error {
	return reg.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "ratelimit_store_file_missing", Help: "1 while the data file is no longer where it was opened.",
	}, func() float64 {
		if w.missing.Load() {
			return 1
		}
		return 0
	}))
}

// run checks the data file until ctx ends. A nil dataWatch has none.
func (w *dataWatch) run(ctx context.Context) error {
	if w == nil {
		return nil
	}
	tick := time.NewTicker(dataPause)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			w.look(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

func (w *dataWatch) look(ctx context.Context) {
	err := w.present()
	gone := errors.Is(err, datafile.ErrGone)
	if err != nil && !gone || gone == w.missing.Load() { // a file whose status cannot be read is not gone
		return
	}
	w.missing.Store(gone)
	if gone {
		w.health.SetTrouble("the data file is gone; the log says more")
		w.log.ErrorContext(ctx, "the data file is gone: decisions go on in memory, and balances are lost when the service ends; put it back, or make a backup now and restore that", "error", err)
		return
	}
	w.health.SetTrouble("")
	w.log.InfoContext(ctx, "the data file is back")
}
