package awsdb

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// breakerScript drives a breaker.
type breakerScript struct {
	*testing.T
	breaker breaker
	now     time.Time
}

func newBreakerScript(t *testing.T) *breakerScript {
	t.Helper()
	return &breakerScript{T: t, now: time.Unix(1_000_000, 0)}
}

// allow demands that calls are allowed, and returns their permits.
func (s *breakerScript) allow(n int) []permit {
	s.Helper()
	permits := make([]permit, n)
	for i := range permits {
		var err error
		if permits[i], err = s.breaker.allow(s.now, false); err != nil {
			s.Fatalf("call %d of %d is refused: %v", i+1, n, err)
		}
	}
	return permits
}

// refuse demands that a call is refused.
func (s *breakerScript) refuse() {
	s.Helper()
	if _, err := s.breaker.allow(s.now, false); !errors.Is(err, limiter.ErrUnavailable) {
		s.Fatalf("a call got %v, want ErrUnavailable", err)
	}
}

// expect requires the breaker's counts.
func (s *breakerScript) expect(outages int64, unavailable bool) {
	s.Helper()
	if o, u := s.breaker.counted(); o != outages || u != unavailable {
		s.Errorf("%d outages, unavailable: %t; want %d, %t", o, u, outages, unavailable)
	}
}

var errCause = errors.New("no route to host")

// end ends calls, with the longest wait if they open the breaker.
func (s *breakerScript) end(v verdict, permits ...permit) {
	for _, p := range permits {
		s.breaker.done(s.now, p, v, errCause, math.MaxUint16)
	}
}

func TestBreakerOpensAndCloses(t *testing.T) {
	s := newBreakerScript(t)
	s.end(down, s.allow(outageFailures-1)...)
	s.end(answered, s.allow(1)...)
	s.end(down, s.allow(outageFailures-1)...) // not in a row with those of before
	s.end(unjudged, s.allow(3)...)
	s.expect(0, false)
	s.end(down, s.allow(1)...)
	s.refuse()
	s.expect(1, true)
	if _, err := s.breaker.allow(s.now, false); !strings.Contains(err.Error(), errCause.Error()) {
		t.Errorf("%q does not name the cause", err)
	}
	s.now = s.now.Add(firstOutage * 9 / 10)
	s.refuse()
	s.now = s.now.Add(firstOutage / 10)
	probe := s.allow(1)
	s.refuse() // one probe
	s.end(unjudged, probe...)
	probe = s.allow(1) // the other said nothing
	s.end(rejected, probe...)
	s.refuse()
	s.now = s.now.Add(firstOutage) // twice as long by now
	s.refuse()
	s.now = s.now.Add(firstOutage)
	probe = s.allow(1)
	s.expect(1, true)
	s.end(answered, probe...)
	s.expect(1, false)
}

// Calls that have no answer in their time are an outage after a second of nothing else. Those that
// end long after their time say that the machine stood still.
func TestBreakerWaitsForLateAnswers(t *testing.T) {
	s := newBreakerScript(t)
	permits := s.allow(5 * outageFailures)
	s.now = s.now.Add(Silence - 1)
	s.end(late, permits[:4*outageFailures]...)
	s.expect(0, false)
	s.end(down, s.allow(outageFailures-1)...)
	s.expect(0, false)
	s.now = s.now.Add(1)
	s.end(late, permits[4*outageFailures])
	s.expect(1, true)

	began := time.Now()
	ctx, cancel := context.WithDeadline(t.Context(), began.Add(100*time.Millisecond))
	defer cancel()
	for after, want := range map[time.Duration]verdict{100 * time.Millisecond: late, 300 * time.Millisecond: late, 400 * time.Millisecond: unjudged} {
		<-ctx.Done()
		if got := verdictOf(ctx, ctx.Err(), began, began.Add(after)); got != want {
			t.Errorf("a call that ends after %v: verdict %d, want %d", after, got, want)
		}
	}
}

// Once a call was answered, no other is refused: those beyond the number at a time are to be
// made again soon, as those that are throttled.
func TestTheFirstAnswerEndsTheOutage(t *testing.T) {
	s := newBreakerScript(t)
	s.end(down, s.allow(outageFailures)...)
	s.now = s.now.Add(firstOutage)
	s.end(answered, s.allow(1)...)
	s.expect(1, false)
	s.allow(2)
	_, err := s.breaker.allow(s.now, false)
	if !errors.Is(err, ErrPaced) || errors.Is(err, ErrOutage) || !errors.Is(err, limiter.ErrUnavailable) || !Retryable(err) || !Passes(err) {
		t.Errorf("a call beyond those at a time got %v", err)
	}
	if got := s.breaker.look().Condition; got != Recovering {
		t.Errorf("it is %v, want %v", got, Recovering)
	}
}

// A silence opens the breaker once, since the first call that waits.
func TestSilenceOpensTheBreaker(t *testing.T) {
	s := newBreakerScript(t)
	began := s.now
	s.end(down, s.allow(1)...)
	s.now = s.now.Add(time.Second)
	for _, want := range []bool{true, false} {
		if got := s.breaker.silent(s.now, began.Add(-time.Second), errCause, math.MaxUint16); got != want {
			t.Errorf("it opened is %t, want %t", got, want)
		}
		s.expect(1, true)
		s.now = s.now.Add(firstOutage / 4)
	}
	if got := s.breaker.look(); got.Condition != Unavailable || !got.Since.Equal(began.Add(-time.Second)) {
		t.Errorf("got %+v, want unavailable since the first call", got)
	}
	s.now = s.now.Add(firstOutage / 2) // the second did not put off the try
	s.end(answered, s.allow(1)...)
	s.expect(1, false)
}

// After an outage calls come back one by one, then more, then all.
func TestBreakerRecoversWithoutAStampede(t *testing.T) {
	s := newBreakerScript(t)
	s.end(down, s.allow(outageFailures)...)
	s.now = s.now.Add(firstOutage)
	s.end(down, s.allow(1)...)
	s.now = s.now.Add(2 * firstOutage)
	for limit := 1; limit <= recoveredCalls; limit *= 2 {
		permits := s.allow(limit)
		s.refuse()
		s.end(answered, permits...)
	}
	s.end(down, s.allow(10*recoveredCalls)...)
	s.refuse()
	s.now = s.now.Add(firstOutage)
	s.allow(1) // the next outage's first wait is as short
}

// A failure while it recovers means fewer calls at a time; many in a row are an outage again.
func TestBreakerFailsWhileRecovering(t *testing.T) {
	s := newBreakerScript(t)
	s.end(down, s.allow(outageFailures)...)
	s.now = s.now.Add(firstOutage)
	s.end(answered, s.allow(1)...)
	s.end(answered, s.allow(2)...)
	permits := s.allow(4)
	s.end(down, permits[0])
	s.refuse() // three are under way, of two at a time
	s.end(down, permits[1:3]...)
	s.refuse() // one is under way, of one at a time
	s.end(unjudged, permits[3])
	for range outageFailures - 3 {
		permit := s.allow(1)
		s.refuse()
		s.end(down, permit...)
	}
	s.refuse()
	s.now = s.now.Add(2 * firstOutage)
	s.allow(1)
	s.refuse()
}

// bear has callers ask at once, again and again, while some of 100 calls fail. It
// returns how many calls were refused, and allowed while the breaker was not closed.
func (s *breakerScript) bear(rounds, callers, percent int, seed uint64) (refused, tried int) {
	r := rand.New(rand.NewPCG(seed, 0)) // #nosec G404 -- a script
	for range rounds {
		s.now = s.now.Add(10 * time.Millisecond)
		var permits []permit
		for range callers {
			if p, err := s.breaker.allow(s.now, false); err == nil {
				permits = append(permits, p)
			}
		}
		refused += callers - len(permits)
		if s.breaker.open {
			tried += len(permits)
		}
		for _, p := range permits {
			v := answered
			if r.IntN(100) < percent {
				v = down
			}
			s.end(v, p)
		}
	}
	return refused, tried
}

// While most calls are answered the breaker closes after an outage, and stays closed.
func TestBreakerBearsFailures(t *testing.T) {
	const rounds, callers, most = 2000, 64, 5 * recoveredCalls
	for _, percent := range []int{0, 2, 10, 20} {
		for seed := range uint64(10) {
			s := newBreakerScript(t)
			s.end(down, s.allow(outageFailures)...)
			refused, tried := s.bear(rounds, callers, percent, seed)
			if s.breaker.open || tried > most {
				t.Errorf("%d %% fail, seed %d: open is %t after %d calls, want false after at most %d", percent, seed, s.breaker.open, tried, most)
			}
			if got := s.breaker.outages; got != 1 {
				t.Errorf("%d %% fail, seed %d: %d outages, want 1", percent, seed, got)
			}
			if share := 100 * refused / (rounds * callers); share >= 10 {
				t.Errorf("%d %% fail, seed %d: %d %% are refused, want less than 10", percent, seed, share)
			}
		}
	}
}

// While hardly any call is answered, few are tried.
func TestBreakerOpensWhenMostCallsFail(t *testing.T) {
	const rounds, callers = 6000, 16 // a minute
	for seed := range uint64(10) {
		s := newBreakerScript(t)
		if refused, _ := s.bear(rounds, callers, 90, seed); refused < rounds*callers*99/100 {
			t.Errorf("seed %d: %d of %d calls are refused while 90 %% fail, want 99 %%", seed, refused, rounds*callers)
		}
	}
}

// Calls that began before the breaker opened say nothing of it when they end.
func TestBreakerForgetsCallsOfBefore(t *testing.T) {
	s := newBreakerScript(t)
	before := s.allow(10)
	s.end(down, before[:outageFailures]...)
	s.end(answered, before[5])
	s.refuse()
	s.end(down, before[6:]...)
	s.now = s.now.Add(firstOutage)
	s.allow(1)
}

// The wait between two tries grows up to a bound where answers say that it may take long. Chance
// cuts it to no less than half.
func TestBreakerWaits(t *testing.T) {
	for _, tt := range []struct {
		verdict verdict
		r       uint16
		want    []int64 // milliseconds
	}{
		{rejected, 0, []int64{100, 200, 400, 800, 1600, 2500, 2500}},
		{rejected, 1 << 15, []int64{150, 300, 600, 1200, 2400, 3750, 3750}},
		{busy, 0, []int64{100, 200, 400, 500, 500}},
		{late, 1 << 15, []int64{150, 150, 150, 150}},
		{down, 0, []int64{100, 100, 100, 100}},
	} {
		s := newBreakerScript(t)
		permits := s.allow(outageFailures)
		s.now = s.now.Add(Silence)
		for i, ms := range tt.want {
			want := time.Duration(ms) * time.Millisecond
			for _, p := range permits {
				s.breaker.done(s.now, p, tt.verdict, errCause, tt.r)
			}
			s.now = s.now.Add(want - 1)
			s.refuse()
			s.now = s.now.Add(1)
			permits = s.allow(1)
			if s.Failed() {
				t.Fatalf("verdict %d, outage %d", tt.verdict, i)
			}
		}
	}
}

// A probe that never ends does not keep others from being made.
func TestBreakerOutlivesItsProbe(t *testing.T) {
	s := newBreakerScript(t)
	s.end(down, s.allow(outageFailures)...)
	for range 3 {
		s.now = s.now.Add(firstOutage - time.Millisecond)
		s.refuse()
		s.now = s.now.Add(time.Millisecond)
		s.allow(1)
		s.refuse()
	}
}

func TestRetryable(t *testing.T) {
	reasons := func(codes ...string) error {
		e := &types.TransactionCanceledException{}
		for _, code := range codes {
			e.CancellationReasons = append(e.CancellationReasons, types.CancellationReason{Code: aws.String(code)})
		}
		return e
	}
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{errors.New("unknown"), false},
		{context.DeadlineExceeded, false},
		{limiter.ErrUnavailable, false},
		{&types.ProvisionedThroughputExceededException{}, true},
		{&types.RequestLimitExceeded{}, true},
		{&smithy.GenericAPIError{Code: "ThrottlingException"}, true},
		{&types.TransactionConflictException{}, true},
		{fmt.Errorf("wrapped: %w", &types.TransactionConflictException{}), true},
		{&types.InternalServerError{}, false},
		{&types.ConditionalCheckFailedException{}, false},
		{&smithy.GenericAPIError{Code: "ValidationException"}, false},
		{&smithy.GenericAPIError{Code: "AccessDeniedException"}, false},
		{reasons("None", "TransactionConflict"), true},
		{reasons("ThrottlingError"), true},
		{reasons("TransactionConflict", "ConditionalCheckFailed"), false},
		{reasons("ValidationError"), false},
	} {
		if got := Retryable(tt.err); got != tt.want {
			t.Errorf("%v: got %t, want %t", tt.err, got, tt.want)
		}
	}
}

// fakeGuard is a guard before a DynamoDB in memory that has a table.
func fakeGuard(t *testing.T, plan dynamofake.Plan) (*Guard, *dynamofake.DB) {
	t.Helper()
	db := dynamofake.New()
	if _, err := db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:            aws.String("test"),
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("PK"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("PK"), AttributeType: types.ScalarAttributeTypeS}},
	}); err != nil {
		t.Fatal(err)
	}
	db.SetPlan(plan)
	return NewGuard(ItemsOf(db, "test"), GuardConfig{Now: time.Now, Loop: Goroutines{}}), db
}

func putOne(ctx context.Context, to Items) error {
	_, err := to.Write(ctx, schema.NewPut(map[string]types.AttributeValue{"PK": &types.AttributeValueMemberS{Value: "p"}}))
	return err
}

// Some errors open the breaker, and others never do, in any number.
func TestGuardVerdicts(t *testing.T) {
	always := func(f dynamofake.Fault) dynamofake.Plan {
		return func(dynamofake.Call) dynamofake.Fault { return f }
	}
	denied := &smithy.GenericAPIError{Code: "AccessDeniedException"}
	for _, tt := range []struct {
		name     string
		fault    dynamofake.Fault
		deadline time.Duration
		Pause    time.Duration // between calls
		opens    bool
	}{
		{"success", dynamofake.Fault{}, time.Second, 0, false},
		{"throttle", dynamofake.Fault{Kind: dynamofake.Throttle}, time.Second, 0, false},
		{"throttles for long", dynamofake.Fault{Kind: dynamofake.Throttle}, time.Second, throttlePatience / outageFailures, true},
		{"conflict", dynamofake.Fault{Kind: dynamofake.Conflict}, time.Second, throttlePatience, false},
		{"no credentials", dynamofake.Fault{Kind: dynamofake.Fail, Err: &smithy.GenericAPIError{Code: "ExpiredTokenException"}}, time.Second, 0, true},
		{"no key", dynamofake.Fault{Kind: dynamofake.Fail, Err: &smithy.GenericAPIError{Code: "KMSDisabledException"}}, time.Second, 0, true},
		{"no table", dynamofake.Fault{Kind: dynamofake.Fail, Err: &types.ResourceNotFoundException{}}, time.Second, 0, true},
		{"no permission", dynamofake.Fault{Kind: dynamofake.Fail, Err: denied}, time.Second, 0, false},
		{"server error", dynamofake.Fault{Kind: dynamofake.ServerError}, time.Second, 0, true},
		{"error after it was applied", dynamofake.Fault{Kind: dynamofake.AppliedError}, time.Second, 0, true},
		{"lost reply", dynamofake.Fault{Kind: dynamofake.LoseReply}, time.Second, 0, true},
		{"timeout", dynamofake.Fault{Kind: dynamofake.HoldReply}, time.Second, 0, true},
		{"caller in a hurry", dynamofake.Fault{Kind: dynamofake.HoldReply}, hastyCall - 1, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, db := fakeGuard(t, always(tt.fault))
				for range 10 * outageFailures {
					ctx, cancel := context.WithTimeout(t.Context(), tt.deadline)
					_ = putOne(ctx, g) // fails as planned
					cancel()
					time.Sleep(tt.Pause)
				}
				if got := g.breakers[0].outages > 0; got != tt.opens {
					t.Errorf("the breaker opened: %t, want %t, after %d calls", got, tt.opens, db.Count("PutItem"))
				}
			})
		})
	}
}

// A caller that leaves says nothing of DynamoDB.
func TestGuardForgivesCallersThatLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := fakeGuard(t, func(dynamofake.Call) dynamofake.Fault { return dynamofake.Fault{Kind: dynamofake.HoldReply} })
		for range 2 * outageFailures {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Minute, cancel)
			if err := putOne(ctx, g); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
		if g.breakers[0].outages > 0 {
			t.Error("the breaker opened")
		}
	})
}

// In an outage calls fail at once and DynamoDB is left alone; after it, all is well.
func TestGuardInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := true
		g, db := fakeGuard(t, func(dynamofake.Call) dynamofake.Fault {
			if down {
				return dynamofake.Fault{Kind: dynamofake.HoldReply}
			}
			return dynamofake.Fault{}
		})
		call := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			return putOne(ctx, g)
		}
		for range outageFailures {
			if err := call(); errors.Is(err, limiter.ErrUnavailable) {
				t.Fatalf("refused too early: %v", err)
			}
		}
		before, start := db.Count("PutItem"), time.Now()
		for range 1000 {
			if err := call(); !errors.Is(err, limiter.ErrUnavailable) {
				t.Fatalf("got %v, want ErrUnavailable", err)
			}
		}
		if took, calls := time.Since(start), db.Count("PutItem")-before; took != 0 || calls != 0 {
			t.Errorf("1000 calls in the outage took %v and sent %d, want 0 and 0", took, calls)
		}
		for start := time.Now(); time.Since(start) < time.Minute; time.Sleep(10 * time.Millisecond) {
			_ = call() // refused, or a probe that fails
		}
		if calls := db.Count("PutItem") - before; calls < 180 || calls > 600 {
			t.Errorf("%d probes in a minute, want 180 to 600", calls)
		}
		down = false
		time.Sleep(maxOutage)
		for range 100 {
			if err := call(); err != nil {
				t.Fatalf("after the outage: %v", err)
			}
		}
	})
}

// A part of the server that does not answer leaves the calls for the others, and is the state of the server. Calls for
// several parts have outages of their own.
func TestAnOutageOfAPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, db := fakeGuard(t, func(dynamofake.Call) dynamofake.Fault { return dynamofake.Fault{Kind: dynamofake.ServerError} })
		part, one := 1, true
		g = NewGuard(g.items, GuardConfig{Now: time.Now, Loop: Goroutines{}, Parts: 2, Part: func(any) (int, bool) { return part, one }})
		for range outageFailures {
			_ = putOne(t.Context(), g) // fails as planned
		}
		if n, open := g.Outages(); n != 1 || !open || g.State().Condition != Unavailable || g.FailingSince().IsZero() {
			t.Errorf("%d outages, open %t, the state is %v", n, open, g.State())
		}
		db.SetPlan(nil)
		if err := putOne(t.Context(), g); !errors.Is(err, ErrOutage) {
			t.Errorf("a call for the part: %v", err)
		}
		part = 0
		if err := putOne(t.Context(), g); err != nil {
			t.Errorf("a call for the other part: %v", err)
		}
		one = false
		if err := putOne(t.Context(), g); err != nil {
			t.Errorf("a call for both parts: %v", err)
		}
		g.Silent(time.Now(), errCause)
		part, one = 0, true
		if err := putOne(t.Context(), g); !errors.Is(err, ErrOutage) {
			t.Errorf("a call while no part answers: %v", err)
		}
	})
}

// Writes that are all throttled are an outage of writes, also where reads are answered: of a server whose memory is full, or
// of a table that has no capacity for writes. Reads are made meanwhile, and end nothing.
func TestThrottledWritesAreAnOutageBesideReads(t *testing.T) {
	s := newBreakerScript(t)
	read := func(v verdict) {
		t.Helper()
		p, err := s.breaker.allow(s.now, true)
		if err != nil {
			t.Fatalf("a read is refused: %v", err)
		}
		s.end(v, p)
	}
	throttle := func(n int) {
		for range n {
			s.end(busy, s.allow(1)...)
			read(answered)
			s.now = s.now.Add(throttlePatience / (outageFailures - 2))
		}
	}
	throttle(outageFailures - 1)
	s.end(answered, s.allow(1)...) // a write that is answered
	began := s.now
	throttle(outageFailures - 1)
	s.expect(0, false)
	s.end(busy, s.allow(1)...)
	s.expect(1, true)
	if got := s.breaker.look(); got.Condition != Throttled || !got.Since.Equal(began) {
		t.Errorf("got %+v, want throttled since the first write", got)
	}
	for range 3 {
		s.refuse()
		read(answered)
		read(down) // the next write finds it out
		s.refuse()
		s.expect(1, true)
		s.now = s.now.Add(maxBusy)
		s.end(busy, s.allow(1)...) // no read has taken its turn
	}
	s.now = s.now.Add(maxBusy)
	s.end(answered, s.allow(1)...)
	s.expect(1, false)

	s = newBreakerScript(t)
	s.end(down, s.allow(outageFailures)...) // an outage of all calls
	if _, err := s.breaker.allow(s.now, true); !errors.Is(err, ErrOutage) {
		t.Errorf("a read in an outage of all calls got %v", err)
	}
}
