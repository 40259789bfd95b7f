package command

import (
	"io"
	"log/slog"

	"github.com/ratelimit/ratelimit/config"
)

// NewLogger returns a log in the form and at the level of the configuration.
func NewLogger(w io.Writer, cfg config.Log) *slog.Logger {
	opts := &slog.HandlerOptions{Level: cfg.Level}
	if cfg.Format == config.LogJSON {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}
