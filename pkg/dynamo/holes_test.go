package dynamo

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/internal/dynamofake"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// scene is one bucket and what replicas do with it, step by step. Its times are
// seconds after a beginning.
type scene struct {
	t     *testing.T
	db    Client
	table string
	key   schema.Key
	seen  int // replicas
}

func newScene(t *testing.T) *scene {
	t.Helper()
	w := &scene{t: t, db: dynamofake.New(), table: simTable, key: schema.BucketKey("ns", "e", "r", 0, 0)}
	if _, err := w.db.CreateTable(t.Context(), TableInput(w.table)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.db.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName:               aws.String(w.table),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String(schema.AttrTTL), Enabled: aws.Bool(true)},
	}); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *scene) rawItem() (map[string]types.AttributeValue, error) {
	out, err := w.db.GetItem(context.Background(), &dynamodb.GetItemInput{TableName: aws.String(w.table), Key: w.key.Attributes()})
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}

func (w *scene) item() *view {
	w.t.Helper()
	raw, err := w.rawItem()
	if err != nil {
		w.t.Fatal(err)
	}
	if raw == nil {
		return nil
	}
	v, err := parseItem(w.table, w.key, raw, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

// update changes the item as a part of the program would that is not there yet.
func (w *scene) update(expression string, values map[string]int64) {
	w.t.Helper()
	in := &dynamodb.UpdateItemInput{TableName: aws.String(w.table), Key: w.key.Attributes(), ExpressionAttributeNames: map[string]string{}, ExpressionAttributeValues: map[string]types.AttributeValue{}}
	for attr, n := range values {
		p := strconv.Itoa(len(in.ExpressionAttributeValues))
		in.ExpressionAttributeNames["#"+p], in.ExpressionAttributeValues[":"+p] = attr, schema.NumberAttribute(n)
		expression = strings.ReplaceAll(strings.ReplaceAll(expression, "#"+attr, "#"+p), ":"+attr, ":"+p)
	}
	in.UpdateExpression = &expression
	if _, err := w.db.UpdateItem(context.Background(), in); err != nil {
		w.t.Fatal(err)
	}
}

// balance returns what is there of limit a, and leased, in tokens; it may be more
// than the capacity.
func (w *scene) balance(at float64) float64 {
	w.t.Helper()
	v := w.item()
	if v == nil {
		return 10
	}
	b := v.find("a")
	due, _ := dueAt(b.state, b.params, milliseconds(at))
	return float64(b.state.Tokens+due+b.leased) / limiter.Milli
}

// expires has the table delete what is expired at a time, and reports whether that
// is the bucket.
func (w *scene) expires(at float64) bool {
	db, ok := w.db.(*dynamofake.DB)
	return ok && db.Expire(w.table, milliseconds(at)/1000) > 0
}

func milliseconds(at float64) int64 { return simStart + int64(math.Round(at*1000)) }

// member is a replica.
type member struct {
	*scene
	id     int
	limits *limiter.Limits
	knows  knowledge
	writes int
}

func (w *scene) member(limits ...limiter.Limit) *member {
	w.t.Helper()
	set, err := limiter.NewLimits(limits...)
	if err != nil {
		w.t.Fatal(err)
	}
	w.seen++
	return &member{scene: w, id: w.seen, limits: set, knows: knowledge{now: schema.MinTime}}
}

// look has the replica see the item as it is now.
func (m *member) look() { m.knows.learn(m.item()) }

// planned is a write that a replica has planned and not sent yet.
type planned struct {
	*member
	plan  plan
	write *write
}

// intend has the replica plan a request for its newest view, which must lead to a write.
func (m *member) intend(at float64, generation uint64, spends ...limiter.Spend) *planned {
	m.t.Helper()
	r, err := newRequest(milliseconds(at), &limiter.Op{Bucket: limiter.BucketKey{Entity: "e", Resource: "r"}, Limits: m.limits, Generation: generation, Spends: spends})
	if err != nil {
		m.t.Fatal(err)
	}
	p := m.knows.plan([]*request{r})
	if p.stage == nil {
		m.t.Fatalf("replica %d would not write for %+v", m.id, spends)
	}
	m.writes++
	return &planned{m, p, newWrite(m.table, m.key, writeID{m.id % schema.SlotCount, fmt.Sprint(m.id, ":", m.writes)}, &p)}
}

// send has the write arrive, and reports whether it was applied.
func (p *planned) send() bool {
	p.t.Helper()
	var err error
	if p.write.put != nil {
		_, err = p.db.PutItem(context.Background(), p.write.put)
	} else {
		_, err = p.db.UpdateItem(context.Background(), p.write.update)
	}
	if _, refused := awsdb.ConditionItem(err); err != nil && !refused {
		p.t.Fatal(err)
	}
	return err == nil
}

// do has the replica see the item, and write.
func (m *member) do(at float64, spends ...limiter.Spend) {
	m.t.Helper()
	m.look()
	if !m.intend(at, 1, spends...).send() {
		m.t.Fatalf("replica %d: what rests on the item as it is was refused", m.id)
	}
}

func take(n float64) limiter.Spend {
	return limiter.Spend{Limit: "a", Take: int64(math.Round(n * limiter.Milli))}
}

func refund(n float64) limiter.Spend {
	return limiter.Spend{Limit: "a", Refund: int64(math.Round(n * limiter.Milli))}
}

// hole is a write that rests on an old view, and what happens without the rule that
// refuses it.
type hole struct {
	name    string
	prepare func(w *scene) (stale *planned)
	rule    func(*dynamodb.UpdateItemInput) // takes the rule away
	wrong   func(w *scene) bool             // true once the write is applied
}

// aSecond is a limit of 10 tokens that refills one a second.
var aSecond = limiter.Custom("a", 10, 1, time.Second) //nolint:gochecknoglobals // a constant of the cases

func holes() []hole {
	dropping := func(attr, operator string) func(*dynamodb.UpdateItemInput) {
		return without(func(c clause) bool { return c.is(attr, operator) })
	}
	return []hole{
		{
			name: "a plain take from a limit that became full",
			prepare: func(w *scene) *planned {
				a, b := w.member(aSecond), w.member(aSecond)
				b.do(0, take(10))
				b.do(0, refund(4))
				a.look()
				stale := a.intend(5, 1, take(4)) // 4 stored and 5 due
				b.do(0, refund(4))               // by a clock that is behind; at 5 that makes 13: full, and 3 are lost
				return stale
			},
			rule:  dropping(schema.LimitTokens, "<"),
			wrong: func(w *scene) bool { return w.balance(5) > 6 },
		},
		{
			name: "a refill of a limit that became full to the millitoken",
			prepare: func(w *scene) *planned {
				slow := limiter.Custom("a", 10, 1, 7*time.Second)
				a, b := w.member(slow), w.member(slow)
				b.do(0, take(10))
				b.do(0, refund(1))
				a.look()
				stale := a.intend(8.002, 1, take(2)) // 1 stored, 1.143142 due and 6/7 of a millitoken
				b.do(0, refund(10-1-1.143))          // by a clock that is behind; at 8.002 exactly full
				return stale
			},
			rule: func(in *dynamodb.UpdateItemInput) {
				for _, c := range clauses(in) {
					if c.is(schema.LimitTokens, "<") {
						*in.ConditionExpression = strings.Replace(*in.ConditionExpression, c.text, strings.Replace(c.text, "<", "<=", 1), 1)
					}
				}
			},
			wrong: func(w *scene) bool { return w.item().find("a").state.Remainder > 0 },
		},
		{
			name: "a refill by a remainder that a full limit has lost",
			prepare: func(w *scene) *planned {
				slow := limiter.Custom("a", 10, 1, 7*time.Second)
				a, b := w.member(slow), w.member(slow)
				b.do(0, take(10))
				b.do(7.001, take(1)) // leaves nothing, and a seventh of a millitoken
				a.look()
				stale := a.intend(14.007, 1, take(1)) // 7006 ms and that remainder are 1.001
				b.do(0, refund(10))                   // by a clock that is behind: full, without a remainder
				b.do(0, take(10))
				return stale
			},
			rule:  dropping(schema.LimitRemainder, "="),
			wrong: func(w *scene) bool { return w.item().find("a").state.Tokens > 0 },
		},
		{
			name: "a refill to the capacity beside a first lease",
			prepare: func(w *scene) *planned {
				a, b := w.member(aSecond), w.member(aSecond)
				b.do(0, take(1))
				a.look()
				stale := a.intend(100, 1, take(1))
				w.update("SET #b_a_h = :b_a_h ADD #b_a_tk :b_a_tk", map[string]int64{"b_a_h": 5000, "b_a_tk": -5000})
				return stale
			},
			rule:  dropping(schema.LimitLeased, "absent"),
			wrong: func(w *scene) bool { return w.balance(100) > 9 },
		},
		{
			name: "a take of all that a full limit has, beside a lease that grew",
			prepare: func(w *scene) *planned {
				a, b := w.member(aSecond), w.member(aSecond)
				b.do(0, take(1))
				w.update("SET #b_a_h = :b_a_h ADD #b_a_tk :b_a_tk", map[string]int64{"b_a_h": 1000, "b_a_tk": -1000})
				a.look()
				stale := a.intend(100, 1, take(8)) // 8 of the 9 beside the lease
				w.update("ADD #b_a_h :b_a_h, #b_a_tk :b_a_tk", map[string]int64{"b_a_h": 5000, "b_a_tk": -5000})
				return stale
			},
			rule:  without(func(c clause) bool { return c.is(schema.LimitLeased, "<=") }),
			wrong: func(w *scene) bool { return w.item().find("a").state.Tokens < 0 },
		},
		{
			name: "a refill beside a lease that grew",
			prepare: func(w *scene) *planned {
				a, b := w.member(aSecond), w.member(aSecond)
				b.do(0, take(6))
				w.update("SET #b_a_h = :b_a_h", map[string]int64{"b_a_h": 0})
				a.look()
				stale := a.intend(5, 1, take(5)) // 4 stored and 5 due
				b.do(0, refund(5))
				w.update("ADD #b_a_h :b_a_h, #b_a_tk :b_a_tk", map[string]int64{"b_a_h": 5000, "b_a_tk": -5000})
				return stale
			},
			rule:  dropping(schema.LimitLeased, "<="),
			wrong: func(w *scene) bool { return w.balance(5) > 5 },
		},
		{
			name: "a refill at the rate that was",
			prepare: func(w *scene) *planned {
				a, b := w.member(aSecond), w.member(limiter.Custom("a", 10, 1, 10*time.Second))
				a.do(0, take(10))
				a.look()
				stale := a.intend(5, 1, take(4))
				b.look()
				if !b.intend(-3, 2, take(0)).send() { // by a clock that is behind
					w.t.Fatal("the change was refused")
				}
				return stale
			},
			rule:  dropping(schema.AttrVersion, "="),
			wrong: func(w *scene) bool { return w.balance(5) > 0.5 },
		},
		{
			name: "a change of limits after a refill that was taken at once",
			prepare: func(w *scene) *planned {
				a, b := w.member(limiter.Custom("a", 10, 2, time.Second)), w.member(aSecond)
				b.do(0, take(10))
				a.look()
				stale := a.intend(5, 2, take(0))
				b.do(5, take(5)) // as many stored as before
				return stale
			},
			rule:  dropping(schema.AttrRefilled, "="),
			wrong: func(w *scene) bool { return w.balance(5) > 0 },
		},
		{
			name: "a change of limits after another",
			prepare: func(w *scene) *planned {
				a, b := w.member(limiter.Custom("a", 10, 2, time.Second)), w.member(limiter.Custom("a", 10, 3, time.Second))
				w.member(aSecond).do(0, take(10))
				a.look()
				stale := a.intend(0, 2, take(0))
				b.look()
				if !b.intend(0, 3, take(0)).send() {
					w.t.Fatal("the change was refused")
				}
				return stale
			},
			rule:  without(func(c clause) bool { return c.is(schema.AttrVersion, "=") || c.is(schema.AttrGeneration, "=") }),
			wrong: func(w *scene) bool { return w.item().version.Generation < 3 },
		},
		{
			name: "a ttl for a bucket that is in debt by now",
			prepare: func(w *scene) *planned {
				slow := limiter.PerDay("b", 10)
				a, b := w.member(aSecond, slow), w.member(aSecond, slow)
				b.do(0, limiter.Spend{Limit: "b", Take: 1000})
				a.look()
				stale := a.intend(2*3600, 1, take(1)) // must move the ttl on
				b.do(2*3600, limiter.Spend{Limit: "b", Charge: 109_000})
				return stale
			},
			rule:  dropping(schema.AttrTTL, "<="),
			wrong: func(w *scene) bool { return w.expires(3 * 86_400) },
		},
		{
			name: "a take from what is not there any more",
			prepare: func(w *scene) *planned {
				a, b := w.member(aSecond), w.member(aSecond)
				b.do(0, take(1))
				a.look()
				stale := a.intend(0, 1, take(9))
				b.do(0, take(9))
				return stale
			},
			rule:  dropping(schema.LimitTokens, ">="),
			wrong: func(w *scene) bool { return w.balance(0) < 0 },
		},
		{
			name: "a charge that leads below the floor by now",
			prepare: func(w *scene) *planned {
				floored := aSecond.WithMaxDebt(5)
				a, b := w.member(floored), w.member(floored)
				b.do(0, take(1))
				a.look()
				stale := a.intend(0, 1, limiter.Spend{Limit: "a", Charge: 10_000})
				b.do(0, take(9))
				return stale
			},
			rule:  dropping(schema.LimitTokens, ">="),
			wrong: func(w *scene) bool { return w.balance(0) < -5 },
		},
	}
}

// A limit that is dormant keeps the item until it would be full, whatever the others
// need: an item that expires before would bring it back full. Without that the test
// shows what comes back.
func TestTheTTLCoversDormantLimits(t *testing.T) {
	const hour = 3600
	slow := limiter.PerDay("b", 10)
	for _, covered := range []bool{true, false} {
		w := newScene(t)
		w.member(aSecond, slow).do(0, limiter.Spend{Limit: "b", Take: 10_000})
		one := w.member(aSecond)
		one.look()
		change := one.intend(0, 2, take(0))
		if !covered { // reckoned with the limit that the bucket is under
			withTTL(change.write.update, milliseconds(0)/1000+ttlMargin/1000+ttlSlack)
		}
		if !change.send() {
			t.Fatal("the change was refused")
		}
		for _, at := range []float64{1, 12 * hour} { // takes do not lower it
			if w.item() != nil && covered {
				one.look()
				if !one.intend(at, 2, take(1)).send() {
					t.Fatal("a take was refused")
				}
			}
		}
		if got := w.expires(24 * hour); got == covered {
			t.Errorf("covered: %t; expired before the dormant limit is full: %t", covered, got)
		}
		back := limitHas(t, w, "b", 24*hour-60)
		if covered && back >= 10_000 || !covered && back < 10_000 {
			t.Errorf("covered: %t; %d millitokens of the dormant limit are there a minute before it is full", covered, back)
		}
		if covered && !w.expires(27*hour) {
			t.Error("the item stays after all limits are full")
		}
	}
}

// limitHas returns what a limit has at a time, dormant or not; of a bucket without an
// item, its 10 tokens.
func limitHas(t *testing.T, w *scene, limit string, at float64) int64 {
	t.Helper()
	v := w.item()
	if v == nil || v.any(limit) == nil {
		return 10_000
	}
	st := refilled(v.any(limit), milliseconds(at))
	return st.tokens
}

// TestHoles has a write arrive late in each way that was found to break a promise:
// it must be refused, and without its rule it must do harm, else the case shows nothing.
func TestHoles(t *testing.T) { tryHoles(t, holes()) }

func tryHoles(t *testing.T, holes []hole) {
	t.Helper()
	for _, h := range holes {
		t.Run(h.name, func(t *testing.T) {
			w := newScene(t)
			if h.prepare(w).send() {
				t.Errorf("the write was applied; wrong: %t", h.wrong(w))
			}
			w = newScene(t)
			stale := h.prepare(w)
			h.rule(stale.write.update)
			if !stale.send() {
				t.Fatal("without the rule the write is still refused")
			}
			if !h.wrong(w) {
				t.Errorf("without the rule nothing is wrong: %+v", w.item().balances)
			}
		})
	}
}
