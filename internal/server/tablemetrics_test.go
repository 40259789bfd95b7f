package server

import (
	"maps"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
)

// Lost tokens are counted by their cause, in tokens.
func TestLostTokensHaveTheirCause(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(newTableMetrics(onDynamoDB(), func() tableState {
		return tableState{Stats: dynamo.Stats{
			LostLease: 1000, LostUnknown: 2000, LostTwice: 3000, LostOwed: 4000, LostRoom: 5000,
			UsageLostStop: 6000, UsageLostOutage: 7000, UsageLostReply: 8000, UsageLostDeleted: 9500,
		}}
	}))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]map[string]float64)
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if got[family.GetName()] == nil {
					got[family.GetName()] = make(map[string]float64)
				}
				got[family.GetName()][label.GetValue()] = metric.GetCounter().GetValue()
			}
		}
	}
	for name, want := range map[string]map[string]float64{
		"ratelimit_dynamodb_lost_tokens_total":       {"lease": 1, "unknown": 2, "copy": 3, "owed": 4, "room": 5},
		"ratelimit_dynamodb_lost_usage_tokens_total": {"stop": 6, "outage": 7, "reply": 8, "deleted": 9.5},
	} {
		if !maps.Equal(got[name], want) {
			t.Errorf("%s: got %v, want %v", name, got[name], want)
		}
	}
}
