package reservation

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

var equalLimits = cmp.Comparer(func(a, b *limiter.Limits) bool { return a.Hash() == b.Hash() && same(a, b) })

// Generators. There are few names, so that some repeat, of any bytes.

func genName() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"", "default", "key/k-1", "org/acme", "\x00", "\xff\xfe", "é", strings.Repeat("x", 200)}),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 40), func(b []byte) string { return string(b) }),
	)
}

// upTo mixes the ends of a range with all of it.
func upTo(least, most int64) *rapid.Generator[int64] {
	return rapid.OneOf(rapid.Int64Range(least, most), rapid.Int64Range(least, min(most, least+300)), rapid.Int64Range(most-1, most))
}

func genLimit(name string) *rapid.Generator[limiter.Limit] {
	return rapid.Custom(func(t *rapid.T) limiter.Limit {
		if rapid.IntRange(0, 9).Draw(t, "unlimited") == 0 {
			return limiter.Unlimited(name)
		}
		period := time.Duration(upTo(tokenbucket.MinPeriod, tokenbucket.MaxPeriod).Draw(t, "period")) * time.Millisecond
		return limiter.Custom(name, upTo(1, limiter.MaxTokens).Draw(t, "capacity"), upTo(1, limiter.MaxTokens).Draw(t, "refill"), period).
			WithMaxDebt(upTo(limiter.NoDebt, limiter.MaxTokens).Draw(t, "max debt"))
	})
}

func genLimits() *rapid.Generator[*limiter.Limits] {
	names := []string{"rpm", "tpm", "usd", "a", "A", "Z9._-", strings.Repeat("l", limiter.MaxLimitName), "rps", "tpd"}
	return rapid.Custom(func(t *rapid.T) *limiter.Limits {
		list := make([]limiter.Limit, 0, len(names))
		for _, name := range rapid.Permutation(names).Draw(t, "names")[:rapid.IntRange(1, len(names)).Draw(t, "limits")] {
			list = append(list, genLimit(name).Draw(t, name))
		}
		s, err := limiter.NewLimits(list...)
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}

func genHolding(sets []*limiter.Limits) *rapid.Generator[limiter.Holding] {
	return rapid.Custom(func(t *rapid.T) limiter.Holding {
		h := limiter.Holding{
			Bucket: limiter.BucketKey{
				Namespace: genName().Draw(t, "namespace"), Entity: genName().Draw(t, "entity"), Resource: genName().Draw(t, "resource"),
				Variant: rapid.OneOf(rapid.Just(uint64(0)), rapid.Uint64()).Draw(t, "variant"),
				Window:  rapid.SampledFrom([]limiter.Window{{}, {}, {Start: 1764547200, End: 1767225600, Calendar: math.MaxUint64}, {End: 1}}).Draw(t, "window"),
			},
			Limits:     rapid.SampledFrom(sets).Draw(t, "set"),
			Generation: rapid.Uint64().Draw(t, "generation"),
			Shard:      int(upTo(0, math.MaxInt32).Draw(t, "shard")),
			Level:      rapid.IntRange(0, limiter.MaxLevels-1).Draw(t, "level"),
		}
		for range rapid.IntRange(0, 5).Draw(t, "taken") {
			which := rapid.IntRange(0, h.Limits.Len()-1).Draw(t, "limit")
			h.Taken = append(h.Taken, limiter.Consumption{
				Limit: h.Limits.At(which).Name, Amount: upTo(0, tokenbucket.MaxAmount).Draw(t, "amount"),
			})
		}
		return h
	})
}

func genReservation() *rapid.Generator[Reservation] {
	return rapid.Custom(func(t *rapid.T) Reservation {
		sets := rapid.SliceOfN(genLimits(), 1, 4).Draw(t, "sets")
		r := Reservation{
			Namespace: genName().Draw(t, "namespace"),
			Expires:   time.UnixMilli(rapid.OneOf(rapid.Int64(), rapid.Int64Range(0, 1<<42)).Draw(t, "expires")).UTC(),
		}
		for range rapid.IntRange(0, 12).Draw(t, "holdings") {
			r.Holdings = append(r.Holdings, genHolding(sets).Draw(t, "holding"))
		}
		return r
	})
}

func TestRecordKeepsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := genReservation().Draw(t, "reservation")
		record, err := appendRecord([]byte("before"), &want)
		if errors.Is(err, ErrTooLong) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := parseRecord(record[len("before"):])
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, equalLimits); diff != "" {
			t.Fatalf("parsed (-want +got):\n%s", diff)
		}
		if again, err := appendRecord([]byte("before"), &got); err != nil || !bytes.Equal(again, record) {
			t.Fatalf("written again it is %x, %v; want %x", again, err, record)
		}
		for n := range record[len("before"):] {
			if _, err := parseRecord(record[len("before"):][:n]); !errors.Is(err, ErrMalformed) {
				t.Fatalf("its first %d bytes: %v, want malformed", n, err)
			}
		}
		if _, err := parseRecord(append(record[len("before"):], 0)); !errors.Is(err, ErrMalformed) {
			t.Fatalf("with a byte more: %v, want malformed", err)
		}
	})
}

// Repeated names and limits are written once: another level costs little, and shares its limits.
func TestRecordWritesOnce(t *testing.T) {
	limits, err := limiter.NewLimits(limiter.PerMinute("rpm", 60), limiter.PerMinute("tpm", 60_000))
	if err != nil {
		t.Fatal(err)
	}
	twin, err := limiter.NewLimits(limiter.PerMinute("tpm", 60_000), limiter.PerMinute("rpm", 60))
	if err != nil {
		t.Fatal(err)
	}
	explicit, err := limiter.NewLimits(limiter.PerMinute("rpm", 60).WithMaxDebt(600), limiter.PerMinute("tpm", 60_000))
	if err != nil {
		t.Fatal(err)
	}
	r := Reservation{Namespace: "default"}
	var sizes [4]int
	for i, s := range []*limiter.Limits{limits, limits, twin, explicit} {
		r.Holdings = append(r.Holdings, limiter.Holding{
			Bucket: limiter.BucketKey{Namespace: "default", Entity: "org/acme", Resource: "gpt-4"}, Limits: s,
		})
		record, err := appendRecord(nil, &r)
		if err != nil {
			t.Fatal(err)
		}
		sizes[i] = len(record)
	}
	if a, b := sizes[1]-sizes[0], sizes[2]-sizes[1]; a != minHolding || b != minHolding {
		t.Errorf("a level that has all in common with one before takes %d and %d bytes, want %d", a, b, minHolding)
	}
	record, _ := appendRecord(nil, &r)
	got, err := parseRecord(record)
	if err != nil {
		t.Fatal(err)
	}
	if got.Holdings[0].Limits != got.Holdings[2].Limits {
		t.Error("equal limits are two sets")
	}
	if explicit.Hash() != limits.Hash() || got.Holdings[3].Limits.At(0).MaxDebt != 600 {
		t.Errorf("a max debt that is given is %d, want 600", got.Holdings[3].Limits.At(0).MaxDebt)
	}
}

// script writes a record by hand: numbers as varints, strings as they are.
func script(parts ...any) []byte {
	var b []byte
	for _, part := range parts {
		switch p := part.(type) {
		case int:
			b = binary.AppendUvarint(b, uint64(p))
		case uint64:
			b = binary.AppendUvarint(b, p)
		case string:
			b = append(b, p...)
		case []byte:
			b = append(b, p...)
		}
	}
	return b
}

func TestParseRefusesWhatCannotBe(t *testing.T) {
	// The start of a record with one holding in the namespace "n", up to its limits: expires,
	// namespace, count, namespace, entity, resource, variant, generation, shard, level.
	head := script(0, 2, "n", 1, 1, 1, 1, 0, 0, 0, 0)
	limit := script(0, 1, 2, "l", 5, 6, 60_000, 0) // a set of one limit l, 6/minute burst 5
	for _, test := range []struct {
		name   string
		record []byte
		says   string // "" = is read
	}{
		{"one that is right", script(head, limit, 1, 0, 7), ""},
		{"nothing", nil, "does not end"},
		{"a byte too many", script(head, limit, 1, 0, 7, 0), "1 bytes are left over"},
		{"a number of 11 bytes", script(bytes.Repeat([]byte{0x80}, 10), 1), "too great"},
		{"a namespace that does not end", script(0, 200, "n"), "100 bytes does not end"},
		{"a string of 2 GiB", script(0, math.MaxInt32-1), "does not end"},
		{"a string that is not there", script(0, 1), "string 0 is not there"},
		{"more holdings than bytes", script(0, 0, 2, make([]byte, 17)), "number of holdings is 2, which 17 bytes cannot hold"},
		{"145 holdings", script(0, 0, 145, make([]byte, 3000)), "number of holdings is 145; it must be 0 to 144"},
		{"shard 2^31", script(head[:len(head)-2], 1<<31, 0, limit, 0), "shard is 2147483648"},
		{"level 16", script(head[:len(head)-1], 16, limit, 0), "level is 16"},
		{"a set that is not there", script(head, 1, limit, 0), "set of limits is 1; it must be 0 to 0"},
		{"no limits", script(head, 0, 0, 0), "a set of limits is empty"},
		{"17 limits", script(head, 0, 17, make([]byte, 100)), "number of limits is 17; it must be 0 to 16"},
		{"a limit twice", script(head, 0, 2, 2, "l", 5, 6, 60_000, 0, 3, 5, 6, 60_000, 0, 0), "given twice"},
		{"a limit with a bad name", script(head, 0, 1, 2, " ", 0, 0, 0, 0), `limit name " "`},
		{"a capacity above the greatest", script(head, 0, 1, 2, "l", limiter.MaxTokens+1, 6, 60_000, 0, 0), "capacity is 1000000000001"},
		{"a period that overflows", script(head, 0, 1, 2, "l", 5, 6, uint64(math.MaxUint64), 0, 0), "period is 18446744073709551615"},
		{"a period too short", script(head, 0, 1, 2, "l", 5, 6, 999, 0, 0), "period of limit l is 999ms"},
		{"a max debt below -1", script(head, 0, 1, 2, "l", 5, 6, 60_000, 3, 0), "max_debt of limit l is -2"},
		{"a taken limit that is not there", script(head, limit, 1, 1, 7), "limit 1 of 1 is not there"},
		{"the greatest amount", script(head, limit, 1, 0, tokenbucket.MaxAmount), ""},
		{"an amount above the greatest", script(head, limit, 1, 0, tokenbucket.MaxAmount+1), "amount is 1000000000000000001"},
		{"a negative amount", script(head, limit, 1, 0, uint64(math.MaxUint64)), "amount is 18446744073709551615"},
		{"more amounts than bytes", script(head, limit, 2, 0, 7, 0), "number of taken amounts is 2, which 3 bytes cannot hold"},
	} {
		got, err := parseRecord(test.record)
		if test.says == "" {
			if err != nil || len(got.Holdings) != 1 || len(got.Holdings[0].Taken) != 1 {
				t.Errorf("%s: %+v, %v", test.name, got, err)
			}
			continue
		}
		if !errors.Is(err, ErrMalformed) || !strings.Contains(fmt.Sprint(err), test.says) {
			t.Errorf("%s: %v; want it malformed, saying %q", test.name, err, test.says)
		}
	}
}

// Any bytes are parsed without a panic and with memory in proportion. A parsed record is written
// and parsed again as the same.
func FuzzParseRecord(f *testing.F) {
	head := script(0, 2, "n", 2, 1, 1, 1, 0, 0, 0, 0)
	f.Add(script(head, 0, 2, 2, "l", 5, 6, 60_000, 0, 2, "u", 0, 1, 0, 7, 1, 0, 1, uint64(1<<60), 9, 3, 1, 0, 2, 0, 8, 0, 9))
	f.Add(script(0, 0, 1, make([]byte, 9)))
	f.Add(script(head, 0, 16, make([]byte, 60)))
	f.Fuzz(func(t *testing.T, record []byte) {
		r, err := parseRecord(slices.Clone(record))
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Errorf("%x: %v", record, err)
			}
			return
		}
		written, err := appendRecord(nil, &r)
		if errors.Is(err, ErrTooLong) && len(record) > maxRecord {
			return
		}
		if err != nil {
			t.Fatalf("%x: %v", record, err)
		}
		again, err := parseRecord(written)
		if err != nil {
			t.Fatalf("%x: %v", record, err)
		}
		if diff := cmp.Diff(r, again, equalLimits); diff != "" {
			t.Errorf("%x (-read +written and read):\n%s", record, diff)
		}
	})
}

// The longest records, as costly as possible, take memory in proportion to their bytes.
func TestParseAllocatesInProportion(t *testing.T) {
	head := script(0, 2, "n", 128, 1, 1, 1, 0, 0, 0, 0)
	var limits []byte
	for i := range limiter.MaxLimits {
		limits = script(limits, 2, string(rune('a'+i)), 5, 6, 60_000, 0)
	}
	pad := func(b []byte) []byte { return append(b, make([]byte, maxRecord-len(b))...) }
	for _, test := range []struct {
		name   string
		record []byte
	}{
		{"as many amounts as bytes", pad(script(head, 0, 16, limits, 700))},
		{"as many strings as bytes", pad(script(0, 0, 128))},
		{"as many limits as bytes", pad(script(head, 0, 16, limits, 0))},
	} {
		const times = 100
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range times {
			_, _ = parseRecord(test.record)
		}
		runtime.ReadMemStats(&after)
		got := (after.TotalAlloc - before.TotalAlloc) / times
		t.Logf("%s: %d bytes for %d", test.name, got, len(test.record))
		if got > 64*maxRecord {
			t.Errorf("%s: took %d bytes for %d", test.name, got, len(test.record))
		}
	}
}
