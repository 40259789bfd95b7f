package aggregator

import "log/slog"

// Log writes the letter to a log: the key of the item, and nothing else of it.
func (l *Letter) Log(log *slog.Logger) {
	log.Error("a record of the stream cannot be counted", "key", l.Key, "shard", l.Shard, "sequence", string(l.Sequence), "error", l.Problem)
}
