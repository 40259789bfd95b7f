package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/internal/server"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
	"github.com/ratelimit/ratelimit/test/kit/proctest"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

const testTable = "ratelimit" // the default

// newTable returns a DynamoDB in memory that has the table.
func newTable(t *testing.T) *dynamofake.DB {
	t.Helper()
	db := dynamofake.New()
	if err := dynamo.CreateTable(t.Context(), db, testTable); err != nil {
		t.Fatal(err)
	}
	return db
}

// openReplica builds a service on a table in memory.
func openReplica(ctx context.Context, cfg *config.Config, client dynamo.Client, log *proctest.LogBuffer) (*server.Service, error) {
	return server.NewOn(ctx, cfg, slog.New(slog.NewTextHandler(log, nil)), func(s *server.Service, ctx context.Context) error {
		return s.UseTable(ctx, client, nil)
	})
}

// replica is a service on a table in memory that is asked without a network.
type replica struct {
	*server.Service

	log *proctest.LogBuffer
}

func startReplica(t *testing.T, client dynamo.Client, text string) replica {
	t.Helper()
	log := new(proctest.LogBuffer)
	s, err := openReplica(t.Context(), programtest.Parsed(t, text), client, log)
	if err != nil {
		t.Fatal(err)
	}
	return replica{s, log}
}

// stop ends the work of the replica; in a bubble that must be before the test
// returns.
func (r replica) stop() { r.Close(context.Background()) }

// ask asks for hits of the user ada.
func (r replica) ask(t *testing.T, hits int) (admitted bool, a *rlsAnswer) {
	t.Helper()
	body := fmt.Sprintf(`{"domain":"shop","hitsAddend":%d,"descriptors":[{"entries":[{"key":"user","value":"ada"}]}]}`, hits)
	code, text := r.do(t, http.MethodPost, "/json", body)
	a = new(rlsAnswer)
	if err := json.Unmarshal([]byte(text), a); err != nil {
		t.Fatal(err)
	}
	return code == http.StatusOK, a
}

func (r replica) do(t *testing.T, method, path, body string) (code int, text string) {
	t.Helper()
	w := httptest.NewRecorder()
	req := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	req.Host = "localhost"
	req.Header.Set("Content-Type", "application/json")
	r.Handler().ServeHTTP(w, req)
	return w.Code, w.Body.String()
}

func TestReplicasShareALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		a, b := startReplica(t, db, programtest.TwoPerMinute), startReplica(t, db, programtest.TwoPerMinute)
		defer a.stop()
		defer b.stop()
		for i, step := range []struct {
			of   replica
			want bool
		}{{a, true}, {b, true}, {a, false}, {b, false}} {
			if got, answer := step.of.ask(t, 1); got != step.want {
				t.Errorf("request %d: admitted is %t, want %t: %+v", i, got, step.want, answer)
			}
		}
	})
}

// The service reads at its start everything that it can, so its first request reads
// the user only.
func TestTheFirstRequestReadsTheUserOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		r := startReplica(t, db, strings.Replace(programtest.TwoPerMinute, "- domain: shop", "- domain: shop\n  namespace: team-a", 1))
		defer r.stop()
		before := db.Counts()
		if admitted, answer := r.ask(t, 1); !admitted {
			t.Fatalf("denied: %+v", answer)
		}
		for op, want := range map[string]int{"GetItem": 0, "TransactWriteItems": 0, "DescribeTable": 0, "BatchGetItem": 1} {
			if got := db.Count(op) - before[op]; got != want {
				t.Errorf("the first request called %s %d times, want %d", op, got, want)
			}
		}
	})
}

func TestTablesThatCannotBeUsed(t *testing.T) {
	create := func(change func(*dynamodb.CreateTableInput)) func(*testing.T, *dynamofake.DB) {
		return func(t *testing.T, db *dynamofake.DB) {
			in := dynamo.TableInput(testTable)
			change(in)
			if _, err := db.CreateTable(t.Context(), in); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, test := range []struct {
		name  string
		setUp func(*testing.T, *dynamofake.DB)
		want  []string
	}{
		{"missing", func(*testing.T, *dynamofake.DB) {}, []string{"table ratelimit does not exist", "create_table"}},
		{"other keys", create(func(in *dynamodb.CreateTableInput) {
			in.KeySchema[0].AttributeName, in.AttributeDefinitions[0].AttributeName = aws.String("id"), aws.String("id")
		}), []string{"table ratelimit: ", "its key is HASH id S", "must be HASH PK S"}},
		{"without an index", create(func(in *dynamodb.CreateTableInput) {
			in.GlobalSecondaryIndexes = in.GlobalSecondaryIndexes[:3]
			in.AttributeDefinitions = in.AttributeDefinitions[:8]
		}), []string{"table ratelimit: ", "it has no index GSI4"}},
		{"of a newer program", func(t *testing.T, db *dynamofake.DB) {
			create(func(*dynamodb.CreateTableInput) {})(t, db)
			_, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(testTable), Item: map[string]types.AttributeValue{
				"PK": &types.AttributeValueMemberS{Value: "_/SYSTEM#"}, "SK": &types.AttributeValueMemberS{Value: "#VERSION"},
				"schema_version": &types.AttributeValueMemberN{Value: "99"},
			}})
			if err != nil {
				t.Fatal(err)
			}
		}, []string{"schema version 99", "newer version of the program"}},
		{"no permission", func(_ *testing.T, db *dynamofake.DB) {
			db.SetPlan(func(dynamofake.Call) dynamofake.Fault {
				return dynamofake.Fault{Kind: dynamofake.Fail, Err: &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "not authorized"}}
			})
		}, []string{"permission dynamodb:DescribeTable", "not authorized"}},
		{"no permission to write", func(t *testing.T, db *dynamofake.DB) {
			create(func(*dynamodb.CreateTableInput) {})(t, db)
			db.SetPlan(func(c dynamofake.Call) dynamofake.Fault {
				if c.Op != "UpdateItem" {
					return dynamofake.Fault{}
				}
				return dynamofake.Fault{Kind: dynamofake.Fail, Err: &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "not authorized"}}
			})
		}, []string{"raising the generation in table ratelimit", "the store denies access", "not authorized"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db, began := dynamofake.New(), time.Now()
				test.setUp(t, db)
				_, err := openReplica(t.Context(), programtest.Parsed(t, programtest.TwoPerMinute), db, new(proctest.LogBuffer))
				if err == nil {
					t.Fatal("it starts")
				}
				for _, want := range test.want {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("got %q, want %q in it", err, want)
					}
				}
				if waited := time.Since(began); waited > 0 {
					t.Errorf("it waited %v for an error that does not pass", waited)
				}
			})
		})
	}
}

func serverError(dynamofake.Call) dynamofake.Fault {
	return dynamofake.Fault{Kind: dynamofake.ServerError}
}

func TestStartGivesUp(t *testing.T) {
	for _, test := range []struct {
		name string
		plan dynamofake.Plan
	}{
		{"errors", serverError},
		{"silence", func(dynamofake.Call) dynamofake.Fault { return dynamofake.Fault{Kind: dynamofake.HoldReply} }},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db, log, began := newTable(t), new(proctest.LogBuffer), time.Now()
				db.SetPlan(test.plan)
				_, err := openReplica(t.Context(), programtest.Parsed(t, programtest.TwoPerMinute), db, log)
				if err == nil || !strings.Contains(err.Error(), "gave up after 20s: table ratelimit: DynamoDB cannot be reached") {
					t.Errorf("got %v", err)
				}
				if took := time.Since(began); took != command.StartTimeout {
					t.Errorf("it took %v, want %v", took, command.StartTimeout)
				}
				if !strings.Contains(log.String(), "msg=\"start delayed\" waiting_for=\"the table\"") {
					t.Errorf("the log does not say why it waits:\n%s", log)
				}
			})
		})
	}
}

func TestStartWaitsForTheTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		failing := dynamofake.Step{Op: "DescribeTable", Fault: dynamofake.Fault{Kind: dynamofake.ServerError}}
		db.SetPlan(dynamofake.Script(failing, failing))
		r := startReplica(t, db, programtest.TwoPerMinute)
		defer r.stop()
		if got := strings.Count(r.log.String(), "msg=\"start delayed\" waiting_for=\"the table\""); got != 1 {
			t.Errorf("the log says %d times that it waits, want once:\n%s", got, r.log)
		}
		if admitted, answer := r.ask(t, 1); !admitted {
			t.Errorf("denied: %+v", answer)
		}
	})
}

// For any call to the table, the start waits as long as for the table itself.
func TestStartWaitsForAllThatItAsks(t *testing.T) {
	for _, op := range []string{"DescribeTable", "GetItem", "TransactWriteItems", "BatchGetItem", "PutItem", "UpdateItem"} {
		for _, fault := range []dynamofake.Fault{{Kind: dynamofake.ServerError}, {Kind: dynamofake.HoldReply}, {Kind: dynamofake.Throttle}, {Latency: 2 * time.Second}} {
			t.Run(fmt.Sprintf("%s, %v %v", op, fault.Kind, fault.Latency), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					db, began := newTable(t), time.Now()
					db.SetPlan(func(c dynamofake.Call) dynamofake.Fault {
						if c.Op == op && time.Since(began) < 6*time.Second {
							return fault
						}
						return dynamofake.Fault{}
					})
					r := startReplica(t, db, programtest.TwoPerMinute)
					defer r.stop()
					if took := time.Since(began); took > command.StartTimeout {
						t.Errorf("the start took %v, want at most %v", took, command.StartTimeout)
					}
				})
			})
		}
	}
}

// All waits of the start have one budget of time: each takes from the rest of those
// before.
func TestStartHasOneBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, began := newTable(t), time.Now()
		db.SetPlan(func(c dynamofake.Call) dynamofake.Fault {
			if c.Op == "PutItem" || c.Op == "DescribeTable" && time.Since(began) < command.StartTimeout/2 {
				return dynamofake.Fault{Kind: dynamofake.ServerError}
			}
			return dynamofake.Fault{}
		})
		log := new(proctest.LogBuffer)
		_, err := openReplica(t.Context(), programtest.Parsed(t, programtest.TwoPerMinute), db, log)
		if err == nil || !strings.Contains(err.Error(), "gave up after "+command.StartTimeout.String()) || !strings.Contains(err.Error(), "the key of reservations") {
			t.Errorf("got %v, want that it gave up on the key", err)
		}
		if took := time.Since(began); took > command.StartTimeout {
			t.Errorf("it took %v, want at most %v", took, command.StartTimeout)
		}
		if line := (replica{log: log}).line(t, outageBegins); !strings.Contains(line, "on_unavailable=allow") {
			t.Errorf("the log lacks the policy: %s", line)
		}
	})
}

func TestStartIsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		db.SetPlan(serverError)
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(command.ErrInterrupted) })
		_, err := openReplica(ctx, programtest.Parsed(t, programtest.TwoPerMinute), db, new(proctest.LogBuffer))
		if !errors.Is(err, command.ErrInterrupted) {
			t.Errorf("got %v", err)
		}
	})
}

// A new configuration is in force at once, also while the table does not answer.
// Buckets in use come under its limits when the table answers again.
func TestReloadWhileTheTableDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		r := startReplica(t, db, programtest.TwoPerMinute)
		defer r.stop()
		r.ask(t, 1)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- r.Tell(ctx) }()

		db.SetPlan(serverError)
		if err := r.Reload(t.Context(), programtest.Parsed(t, strings.ReplaceAll(programtest.TwoPerMinute, "2/minute", "1/hour"))); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(r.log.String(), "the new limits apply to buckets in use when it does") {
			t.Errorf("the log does not say so:\n%s", r.log)
		}
		time.Sleep(time.Minute) // of the bubble's clock, as below
		db.SetPlan(nil)
		time.Sleep(15 * time.Second) // until the breaker tries
		if !strings.Contains(r.log.String(), "the store has the new limits") {
			t.Errorf("the store did not get the new limits:\n%s", r.log)
		}
		if admitted, answer := r.ask(t, 1); !admitted || answer.Statuses[0].CurrentLimit.RequestsPerUnit != 1 {
			t.Errorf("admitted is %t, %+v; want the new limit", admitted, answer)
		}
		if admitted, _ := r.ask(t, 1); admitted {
			t.Error("the second request is admitted by the old limit")
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// An outage is counted, and shows for as long as calls are refused.
func TestMetricsOfAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		r := startReplica(t, db, programtest.TwoPerMinute)
		defer r.stop()
		expect := func(when string, wants ...string) {
			t.Helper()
			_, text := r.do(t, http.MethodGet, "/metrics", "")
			for _, want := range wants {
				if !strings.Contains(text, "\nratelimit_dynamodb_"+want+"\n") {
					t.Errorf("%s: no %s", when, want)
				}
			}
		}
		r.ask(t, 1)
		expect("before", "outages_total 0", "unavailable 0")
		db.SetPlan(func(dynamofake.Call) dynamofake.Fault { return dynamofake.Fault{Kind: dynamofake.ServerError} })
		r.askUntilOutage(t)
		expect("while nothing is answered", "outages_total 1", "unavailable 1")
		db.SetPlan(nil)
		time.Sleep(time.Minute)
		r.ask(t, 1)
		expect("after", "outages_total 1", "unavailable 0")
	})
}

func TestMetricsOfAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		r := startReplica(t, db, programtest.TwoPerMinute)
		defer r.stop()
		r.ask(t, 1)
		_, text := r.do(t, http.MethodGet, "/metrics", "")
		for _, want := range []string{
			"ratelimit_dynamodb_writes_total 1", "ratelimit_dynamodb_refused_writes_total", "ratelimit_dynamodb_resent_writes_total 0",
			"ratelimit_dynamodb_reads_total", `ratelimit_dynamodb_lost_tokens_total{cause="lease"} 0`, "ratelimit_dynamodb_halts_total 0", "ratelimit_dynamodb_lanes 1",
			"ratelimit_dynamodb_leases 0", "ratelimit_dynamodb_lease_grants_total 0", "ratelimit_dynamodb_lease_renewals_total 0",
			"ratelimit_dynamodb_lease_returns_total 0", "ratelimit_dynamodb_lease_reaps_total 0", "ratelimit_dynamodb_lease_decisions_total 0",
			"ratelimit_dynamodb_splits_total 0", "ratelimit_dynamodb_merges_total 0",
			"ratelimit_dynamodb_outages_total 0", "ratelimit_dynamodb_unavailable 0",
			"ratelimit_dynamodb_clock_offset_seconds 0", "ratelimit_dynamodb_clock_uncertainty_seconds 0", "ratelimit_dynamodb_clock_trusted 1",
			"ratelimit_cache_hits_total", "ratelimit_cache_misses_total", "ratelimit_cache_records",
		} {
			if !strings.Contains(text, "\n"+want) {
				t.Errorf("no %s", want)
			}
		}
		if strings.Contains(text, "ratelimit_store_buckets") {
			t.Error("it counts buckets of an embedded store")
		}
		s, err := server.New(t.Context(), programtest.Parsed(t, programtest.TwoPerMinute), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(t.Context())
		_, text = replica{Service: s}.do(t, http.MethodGet, "/metrics", "")
		if !strings.Contains(text, "\nratelimit_store_buckets 0") || strings.Contains(text, "ratelimit_dynamodb") || strings.Contains(text, "ratelimit_cache") {
			t.Error("an embedded store does not report its kind")
		}
	})
}

// All replicas apply a limit that is stored for a namespace.
func TestAStoredLimitReachesTheFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		hundred := strings.NewReplacer("2/minute", "100/hour", "consume:", "lease: none, consume:").Replace(programtest.TwoPerMinute) // each sees the takes of the other
		a, b := startReplica(t, db, hundred), startReplica(t, db, hundred)
		defer a.stop()
		defer b.stop()
		for _, r := range []replica{a, b} {
			if admitted, answer := r.ask(t, 10); !admitted {
				t.Fatalf("denied: %+v", answer)
			}
		}
		five, err := limiter.NewLimits(limiter.PerHour("rpm", 5))
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Store.PutLimits(t.Context(), limiter.DefaultNamespace, limiter.SystemLimitsRef(), limiter.Record{Limits: five}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second) // of the bubble's clock
		for i, want := range []bool{true, true, true, true, true, false, false} {
			r := []replica{a, b}[i%2]
			if got, answer := r.ask(t, 1); got != want {
				t.Errorf("request %d: admitted is %t, want %t: %+v", i, got, want, answer)
			}
		}
	})
}
