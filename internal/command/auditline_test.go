package command_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

func TestEncode(t *testing.T) {
	limits, err := limiter.NewLimits(limiter.PerMinute("rpm", 60))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	read := &aggregator.Expired{Namespace: "AbCdEfGhIj0", Event: limiter.AuditEvent{
		ID: limiter.AuditID(at, 7), Time: at, Principal: "ada", Action: limiter.ActionPutLimits, Subject: limiter.ResourceLimitsRef("gpt-4"),
		Detail: "rpm: 60/minute", After: limiter.Record{Limits: limits},
	}}
	unread := &aggregator.Expired{
		Namespace: "AbCdEfGhIj0", Event: limiter.AuditEvent{ID: "x"}, Problem: errors.New("no time"),
		Item: map[string]any{"at": "noon", "kind": json.Number("9"), "deep": map[string]any{"list": []any{true, nil}}},
	}
	for want, e := range map[string]*aggregator.Expired{
		`{"namespace_id":"AbCdEfGhIj0","id":"2026-11-22T10:00:00.000Z-0000000000000007","time":"2026-11-22T10:00:00Z","principal":"ada","action":"limits.put",` +
			`"level":"resource","resource":"gpt-4","detail":"rpm: 60/minute","after":{"level":"resource","resource":"gpt-4","limits":{"rpm":"60/minute"},"etag":"\"f23fbab6064b9f17\""}}`: read,
		`{"namespace_id":"AbCdEfGhIj0","id":"x","problem":"no time","item":{"at":"noon","deep":{"list":[true,null]},"kind":9}}`: unread,
	} {
		if got, err := command.EncodeAuditLine(e); err != nil || string(got) != want {
			t.Errorf("got  %s, %v\nwant %s", got, err, want)
		}
	}
}
