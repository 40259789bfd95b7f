package server

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Headers of a call.
const (
	TimestampHeader = "Ratelimit-Timestamp" // of the call, Unix seconds
	SignatureHeader = "Ratelimit-Signature" // "v1=" and the result of SignAlert
)

// body is the body of a call. Amounts are tokens, with up to three decimals.
type body struct {
	ID        string      `json:"id"` // the same whenever the event is sent
	Type      string      `json:"type"`
	Namespace api.Name    `json:"namespace"`
	Entity    api.Name    `json:"entity"`
	Resource  api.Name    `json:"resource"`
	Limit     string      `json:"limit"`
	Window    string      `json:"window"`
	Start     time.Time   `json:"start"`
	End       time.Time   `json:"end"`
	Percent   int         `json:"percent"`
	Budget    int64       `json:"budget"`
	Used      json.Number `json:"used"`
}

// encode returns the body of an event.
func encode(e *limiter.BudgetEvent) ([]byte, error) {
	return json.Marshal(body{
		ID: e.ID(), Type: "budget.threshold", Namespace: api.Name(e.Namespace), Entity: api.Name(e.Entity), Resource: api.Name(e.Resource), Limit: e.Limit,
		Window: e.Window.String(), Start: e.Start, End: e.Window.End(e.Start), Percent: e.Percent, Budget: e.Tokens, Used: inTokens(e.Used),
	})
}

// inTokens writes millitokens as tokens.
func inTokens(milli int64) json.Number {
	text := strconv.FormatInt(milli/limiter.Milli, 10)
	if rest := milli % limiter.Milli; rest != 0 {
		text += "." + strconv.FormatInt(limiter.Milli+rest, 10)[1:]
	}
	return json.Number(text)
}

// SignAlert returns the signature of a call in hexadecimal: HMAC-SHA256 over the timestamp, a dot and
// the body. timestamp is that of the header.
func SignAlert(key []byte, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte(timestamp + ".")) // a hash never fails
	_, _ = mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}
