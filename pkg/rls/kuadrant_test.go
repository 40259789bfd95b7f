package rls_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// kuadrant calls a method of Kuadrant's service with a request in JSON, and returns the answer in JSON.
func (e *env) kuadrant(tb testing.TB, method, request string) (string, error) {
	tb.Helper()
	file, err := rls.KuadrantDescriptor()
	if err != nil {
		tb.Fatal(err)
	}
	m := file.Services().Get(0).Methods().ByName(protoreflect.Name(method))
	in, out := dynamicpb.NewMessage(m.Input()), dynamicpb.NewMessage(m.Output())
	if err := protojson.Unmarshal([]byte(request), in); err != nil {
		tb.Fatalf("%v in %s", err, request)
	}
	if err := e.conn.Invoke(tb.Context(), "/"+rls.KuadrantServiceName+"/"+method, in, out, grpc.StaticMethod()); err != nil {
		return "", err
	}
	text, err := protojson.Marshal(out)
	if err != nil {
		tb.Fatal(err)
	}
	return strings.ReplaceAll(string(text), " ", ""), nil
}

// limited makes the environment one of limits of a limitador file.
func (e *env) limited(tb testing.TB) *env {
	tb.Helper()
	e.service.Reload(limitRules(tb), &rls.Options{Limitador: true, Headers: rls.Headers{XRateLimit: true}, Keyring: keyring(tb, key(1)), Lifetime: time.Hour})
	return e
}

// limitRules are limits of a limitador file, and a rule beside them.
func limitRules(tb testing.TB) *descriptor.Rules {
	tb.Helper()
	return compile(tb, []descriptor.DomainSpec{
		{Path: "limits", Domain: "ns", Limits: []descriptor.CallLimitSpec{
			{Path: "[0]", Name: "tokens", MaxValue: 100, Seconds: 3600, Conditions: []string{`descriptors[0].path == "/chat"`}, Variables: []string{`descriptors[0].user`}},
			{Path: "[1]", Name: "all", MaxValue: 150, Seconds: 3600, Conditions: []string{`descriptors[0].path == "/chat"`}},
			{Path: "[2]", Name: "nothing", MaxValue: 0, Seconds: 60, Conditions: []string{`descriptors[0].path == "/closed"`}},
		}},
		{Path: "rules", Domain: "llm", Rules: []descriptor.RuleSpec{{Name: "free", Unlimited: true, Match: match("tier", "free")}}},
	})
}

// chat is the request of a user, with more members.
func chat(user, more string) string {
	return fmt.Sprintf(`{"domain":"ns","descriptors":[{"entries":[{"key":"path","value":"/chat"},{"key":"user","value":%q}]}]%s}`, user, more)
}

const (
	kuadrantOK   = `{"overallCode":"OK"}`
	kuadrantOver = `{"overallCode":"OVER_LIMIT"}`
)

// The service answers as limitador: a check looks for room for one hit, a report counts past the limit, and each
// looks at all limits that apply.
func TestKuadrant(t *testing.T) {
	t.Parallel()
	e := replicas(t, 1)[0].limited(t)
	code := func(method, request, want string) {
		t.Helper()
		got, err := e.kuadrant(t, method, request)
		if before, _, ok := strings.Cut(got, `,"responseHeadersToAdd"`); ok {
			got = before + "}"
		}
		if before, _, ok := strings.Cut(got, `,"dynamicMetadata"`); ok {
			got = before + "}"
		}
		if err != nil || got != want {
			t.Errorf("%s %s: got %s, %v, want %s", method, request, got, err, want)
		}
	}
	code("CheckRateLimit", chat("al", `,"hitsAddend":0`), kuadrantOK)
	code("CheckRateLimit", chat("al", `,"hitsAddend":1000`), kuadrantOK) // whatever its number
	code("Report", chat("al", `,"hitsAddend":99`), kuadrantOK)
	code("CheckRateLimit", chat("al", ""), kuadrantOK)
	code("Report", chat("al", ""), kuadrantOK) // 0 hits are 1
	code("CheckRateLimit", chat("al", ""), kuadrantOver)
	code("CheckRateLimit", chat("bo", ""), kuadrantOK)
	code("Report", chat("bo", `,"hitsAddend":60`), kuadrantOK) // past the limit of all
	code("CheckRateLimit", chat("cy", ""), kuadrantOver)
	code("CheckRateLimit", strings.ReplaceAll(chat("al", ""), "/chat", "/closed"), kuadrantOver)
	code("Report", strings.ReplaceAll(chat("al", ""), "/chat", "/closed"), kuadrantOK)
	code("CheckRateLimit", strings.ReplaceAll(chat("al", ""), "/chat", "/other"), kuadrantOK)
	code("CheckRateLimit", strings.ReplaceAll(chat("al", ""), `"ns"`, `"unknown"`), kuadrantOK)

	if _, err := e.kuadrant(t, "Report", strings.ReplaceAll(chat("al", ""), `"ns"`, `"llm"`)); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "limitador") {
		t.Errorf("a domain of rules: got %v", err)
	}
	e.clock.advance(2 * time.Hour)
	answer, err := e.ask(t, chat("al", `,"hitsAddend":100`))
	if err != nil || answer.GetOverallCode() != isOK || len(answer.GetStatuses()) > 0 {
		t.Errorf("ShouldRateLimit: got %v, %v", answer, err)
	}
	if answer, err = e.ask(t, chat("al", "")); err != nil || answer.GetOverallCode() != isOver {
		t.Errorf("ShouldRateLimit: got %v, %v", answer, err)
	}
	if headers := fmt.Sprint(answer.GetResponseHeadersToAdd()); !strings.Contains(headers, "100, 100;w=3600") {
		t.Errorf("headers %s", headers)
	}
}

// hold reserves an amount, and returns the id; "" = denied.
func (e *env) hold(tb testing.TB, user string, amount int) string {
	tb.Helper()
	got, err := e.kuadrant(tb, "Reserve", chat(user, fmt.Sprintf(`,"amount":%d,"ttl":"60s"`, amount)))
	if err != nil {
		tb.Fatal(err)
	}
	if got == `{"code":"OVER_LIMIT"}` {
		return ""
	}
	id, ok := strings.CutPrefix(got, `{"code":"OK","reservationId":"`)
	if !ok || len(id) < 3 {
		tb.Fatalf("got %s", got)
	}
	return strings.TrimSuffix(id, `"}`)
}

// commit commits the use of a reservation, and reports whether there was one.
func (e *env) commit(tb testing.TB, user, id string, used int) bool {
	tb.Helper()
	got, err := e.kuadrant(tb, "Commit", chat(user, fmt.Sprintf(`,"reservationId":%q,"actualAmount":%d`, id, used)))
	if err != nil || got != "{}" && got != `{"reservationReleased":true}` {
		tb.Fatalf("got %s, %v", got, err)
	}
	return got != "{}"
}

// A reservation of one replica is committed at another one: the holds never exceed a limit, and what remains is what
// was used.
func TestKuadrantReserves(t *testing.T) {
	t.Parallel()
	all := replicas(t, 2)
	one, two := all[0].limited(t), all[1].limited(t)
	first, second := one.hold(t, "al", 60), two.hold(t, "al", 40)
	if first == "" || second == "" {
		t.Fatal("two that fit were denied")
	}
	if two.hold(t, "al", 1) != "" {
		t.Error("a third one was admitted: holds exceed the limit")
	}
	if !two.commit(t, "al", first, 10) || !one.commit(t, "al", second, 20) {
		t.Error("a live reservation was not released")
	}
	if two.commit(t, "al", first, 10) {
		t.Error("a repeated commit released something")
	}
	if one.hold(t, "al", 71) != "" {
		t.Error("more was left than was used: 30 of 100")
	}
	if id := two.hold(t, "al", 70); id == "" {
		t.Error("less was left than was used: 30 of 100")
	} else if !one.commit(t, "al", id, 0) {
		t.Error("a commit of nothing did not release")
	}

	// Nothing is reserved by 0, and a commit without a live reservation is a report.
	none := one.hold(t, "al", 0)
	if none == "" || one.commit(t, "al", none, 70) {
		t.Error("an empty reservation: denied, or released")
	}
	if one.hold(t, "al", 1) != "" {
		t.Error("the report was lost")
	}
	if one.hold(t, "al", 0) == "" {
		t.Error("nothing asked of nothing left: only debt denies")
	}
	one.commit(t, "al", "", 1)
	if one.hold(t, "al", 0) != "" {
		t.Error("nothing asked in debt was admitted")
	}
	if one.commit(t, "bo", "made-up", 0) || one.hold(t, "bo", 40) == "" {
		t.Error("a commit of nothing took something")
	}
}

// A long value is no obstacle to a commit. What cannot be committed stays taken, and is not taken twice.
func TestKuadrantReservesOnce(t *testing.T) {
	t.Parallel()
	e := replicas(t, 1)[0].limited(t)
	long := strings.Repeat("al", 5000)
	if id := e.hold(t, long, 100); !e.commit(t, long, id, 0) || e.hold(t, long, 100) == "" {
		t.Error("a reservation of a long value was not released")
	}
	e.service.Reload(limitRules(t), &rls.Options{Limitador: true}) // without a key no id can be settled
	id := e.hold(t, "bo", 40)
	if e.commit(t, "bo", id, 40) {
		t.Error("a reservation without a key was released")
	}
	if e.hold(t, "bo", 10) == "" {
		t.Error("its use was taken beside it: 40 and 40 of the 50 that were left of all")
	}
}

// More than a limit holds is never reserved, and a hostile message is no panic.
func TestKuadrantBounds(t *testing.T) {
	t.Parallel()
	e := replicas(t, 1)[0].limited(t)
	for _, amount := range []string{"101", "9223372036854775807", "18446744073709551615"} {
		got, err := e.kuadrant(t, "Reserve", chat("al", `,"amount":`+amount+`,"ttl":"315576000000s"`))
		if err != nil || got != `{"code":"OVER_LIMIT"}` {
			t.Errorf("amount %s: got %s, %v", amount, got, err)
		}
	}
	id := e.hold(t, "al", 100)
	got, err := e.kuadrant(t, "Commit", chat("al", `,"reservationId":"`+id+`","actualAmount":18446744073709551615`))
	if err != nil || got != `{"reservationReleased":true}` {
		t.Errorf("got %s, %v", got, err)
	}
	if e.hold(t, "al", 0) != "" {
		t.Error("a user that used more than all is not in debt")
	}
	if _, err := e.kuadrant(t, "Reserve", `{}`); status.Code(err) != codes.InvalidArgument {
		t.Errorf("got %v", err)
	}
}
