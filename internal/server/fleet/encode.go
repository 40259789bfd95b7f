package fleet

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ratelimit/ratelimit/pkg/admin/controlapi"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Bounds of the content of a report.
const (
	reportVersion = 1
	maxPlain      = 256 << 10 // bytes before compression
	maxName       = 64        // of host and version, in bytes
	maxHash       = 128       // of a configuration, in bytes
	maxResults    = 16
	reportEvents  = 10
	reportRows    = 20 // of an order
)

// reportRow is a row of a top in a report.
type reportRow struct {
	Namespace api.Name `json:"n"`
	Entity    api.Name `json:"e"`
	Resource  api.Name `json:"r"`
	Limit     api.Name `json:"l"`
	Events    int64    `json:"c"`
	Amount    int64    `json:"a"`
}

// reportBody is a report as JSON. Results have the first number and then the differences, which are short.
type reportBody struct {
	Version int                    `json:"v"`
	Replica api.Replica            `json:"replica"`
	Stopped bool                   `json:"stopped,omitempty"`
	First   int64                  `json:"first"`
	Steps   int                    `json:"steps"`
	Results counts                 `json:"results"`
	Events  []api.Event            `json:"events"`
	Tops    map[string][]reportRow `json:"tops"`
}

// cut is how much of a report is written.
type cut struct{ rows, events, steps int }

// cuts are tried in order until a report fits. The least one always does.
func cuts() []cut {
	return []cut{
		{reportRows, reportEvents, Steps},
		{14, reportEvents, Steps},
		{10, reportEvents, Steps},
		{6, reportEvents, Steps},
		{3, reportEvents / 2, Steps},
		{1, 3, Steps},
		{1, 3, Steps / 3},
		{0, 3, Steps / 3},
		{0, 0, 6},
	}
}

// encode returns a report in at most limiter.MaxReport bytes. One that would have more loses rows of tops first, then
// events, then steps.
func encode(r *report) ([]byte, error) {
	var packed bytes.Buffer
	z, err := flate.NewWriter(&packed, flate.DefaultCompression)
	if err != nil {
		return nil, err // cannot be: the level is legal
	}
	for _, c := range cuts() {
		plain, err := json.Marshal(c.of(r))
		if err != nil {
			return nil, err
		}
		if len(plain) > maxPlain {
			continue
		}
		packed.Reset()
		z.Reset(&packed)
		if _, err := z.Write(plain); err != nil {
			return nil, err
		}
		if err := z.Close(); err != nil {
			return nil, err
		}
		if packed.Len() <= limiter.MaxReport {
			return packed.Bytes(), nil
		}
	}
	return nil, fmt.Errorf("a report of a replica has %d bytes, and must have %d", packed.Len(), limiter.MaxReport)
}

// of returns the part of a report that is written.
func (c cut) of(r *report) *reportBody {
	w := r.series.last(c.steps)
	b := &reportBody{Version: reportVersion, Replica: bounded(r.replica), Stopped: r.stopped, First: w.first, Steps: w.steps, Results: make(counts, len(w.results))}
	for result, list := range w.results {
		if d, used := differences(list); used {
			b.Results[result] = d
		}
	}
	b.Events = r.events[:min(len(r.events), c.events)]
	b.Tops = make(map[string][]reportRow, len(r.tops))
	for by, rows := range r.tops {
		for _, row := range rows[:min(len(rows), c.rows)] {
			b.Tops[by] = append(b.Tops[by], reportRow{
				api.Name(row.Namespace), api.Name(row.Entity), api.Name(row.Resource), api.Name(row.Limit), row.Events, row.Amount,
			})
		}
	}
	return b
}

// last returns the last steps of a window, at most n.
func (w *window) last(n int) window {
	skip := max(w.steps-n, 0)
	out := window{first: w.first + int64(skip), steps: w.steps - skip, results: make(counts, len(w.results))}
	for result, list := range w.results {
		out.results[result] = list[skip:]
	}
	return out
}

// differences returns the first number of a list and the differences that follow, and whether any is not 0.
func differences(list []int64) (d []int64, used bool) {
	d = make([]int64, len(list))
	before := int64(0)
	for i, n := range list {
		d[i], before = n-before, n
		used = used || n != 0
	}
	return d, used
}

// bounded returns the state of a replica with texts of bounded length.
func bounded(r api.Replica) api.Replica {
	r.Host, r.Version, r.Reason = cutText(r.Host, maxName), cutText(r.Version, maxName), cutText(r.Reason, maxText)
	r.Configuration.Hash, r.Configuration.Error = cutText(r.Configuration.Hash, maxHash), cutText(r.Configuration.Error, maxText)
	if s := r.Store; s != nil {
		r.Store = &api.StoreState{Type: cutText(s.Type, maxName), State: cutText(s.State, maxName), Since: s.Since, Policy: cutText(s.Policy, maxName)}
	}
	return r
}

// errReport says that a report is not in the form of this program.
var errReport = errors.New("a report of a replica is not in the form of this program")

// decode reads the report of another replica, and bounds all that it has.
func decode(stored *limiter.Report, seen time.Time) (report, error) {
	plain, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(stored.Body)), maxPlain+1))
	if err != nil || len(plain) > maxPlain {
		return report{}, errReport
	}
	var b reportBody
	if err := json.Unmarshal(plain, &b); err != nil || b.Version != reportVersion || b.Steps < 0 || b.Steps > Steps || len(b.Results) > maxResults {
		return report{}, errReport
	}
	r := report{replica: bounded(b.Replica), stopped: b.Stopped, series: window{first: b.First, steps: b.Steps, results: make(counts, len(b.Results))}}
	r.replica.ID, r.replica.Seen, r.replica.Here = stored.Replica, seen.UTC().Truncate(time.Millisecond), false
	for result, list := range b.Results {
		if len(list) != b.Steps {
			return report{}, errReport
		}
		r.series.results[cutText(result, maxName)] = sums(list)
	}
	for _, e := range b.Events[:min(len(b.Events), reportEvents)] {
		r.events = append(r.events, api.Event{Time: e.Time, Replica: stored.Replica, Kind: e.Kind, Text: cutText(e.Text, maxText)})
	}
	r.tops = make(map[string][]controlapi.TopRow, len(b.Tops))
	for _, by := range []string{api.TopDenied, api.TopBusiest, api.TopShadow} {
		for _, row := range b.Tops[by][:min(len(b.Tops[by]), reportRows)] {
			r.tops[by] = append(r.tops[by], controlapi.TopRow{
				TopKey: controlapi.TopKey{Namespace: short(row.Namespace), Entity: short(row.Entity), Resource: short(row.Resource), Limit: short(row.Limit)},
				Events: max(row.Events, 0), Amount: max(row.Amount, 0),
			})
		}
	}
	return r, nil
}

// short bounds a name. One that its replica has shortened stays as it is, as the other replicas have it.
func short(name api.Name) string {
	if limiter.Shortened(string(name)) {
		return string(name)
	}
	return limiter.ShortName(string(name))
}

// maxCount is more decisions than a process makes in a step.
const maxCount = 1 << 50

// sums undoes differences. A number that no report has is bounded.
func sums(differences []int64) []int64 {
	list := make([]int64, len(differences))
	n := int64(0)
	for i, d := range differences {
		n += d
		list[i] = min(max(n, 0), maxCount)
	}
	return list
}
