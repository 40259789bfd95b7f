package envoytest_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/test/envoytest"
)

// answer is one of a provider, and the outcome that the scripts must have for it.
type answer struct {
	name, contentType, body string
	kinds                   string // examples/llm
	total                   string // istio/tokens.yaml
	events                  string // llm-stable-filters.yaml, where it is not the total
}

const (
	jsonType   = "application/json"
	streamType = "text/event-stream; charset=utf-8"
)

// want returns the outcome that the script of a file must have for an answer.
func (a answer) want(file string) string {
	switch {
	case file == "llm/envoy.yaml":
		return a.kinds
	case file == "istio/tokens.yaml" || a.events == "":
		return a.total
	default:
		return a.events
	}
}

// The pieces of answers.
const (
	word        = `{"id":"c-1","choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}],"usage":null}`
	openAIUsage = `"usage":{"prompt_tokens":1012,"completion_tokens":88,"total_tokens":1100,"prompt_tokens_details":{"cached_tokens":400,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":64}}`
	openAIKinds = "input=612 cached=400 output=88"
	openAITotal = "total_tokens=1100"
	last        = `{"id":"c-1","choices":[],` + openAIUsage + `}`

	messageStart = `{"type":"message_start","message":{"id":"m-1","type":"message","content":[],"stop_reason":null,"usage":{"input_tokens":25,"cache_creation_input_tokens":30,"cache_read_input_tokens":400,"cache_creation":{"ephemeral_5m_input_tokens":30,"ephemeral_1h_input_tokens":0},"output_tokens":1,"service_tier":"standard"}}}`
	messageText  = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}`
	messageDelta = `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":88}}`
	messageAll   = `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":27,"cache_creation_input_tokens":30,"cache_read_input_tokens":401,"output_tokens":89}}`
	messageKinds = "input=55 cached=400 output=88"
)

// stream returns events with their end of line.
func stream(end string, events ...string) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString("data: " + e + end + end)
	}
	return b.String()
}

// answers are the answers that providers send, and could send.
func answers() []answer {
	message := `{"id":"m-1","content":[{"type":"tool_use","input":%s}],"usage":{"input_tokens":25,"cache_creation_input_tokens":30,"cache_read_input_tokens":400,"output_tokens":88}}`
	openAI := stream("\n", word, word, last, "[DONE]")
	return append([]answer{
		{"json", jsonType, `{"choices":[{"message":{"content":"word"}}],` + openAIUsage + "}\n", openAIKinds, openAITotal, ""},
		{"json, indented", jsonType, strings.NewReplacer("{", "{\r\n  ", ":", "\t:  ", ",", " ,\r\n").Replace(`{"id":"c-1",` + openAIUsage + "}"), openAIKinds, openAITotal, ""},
		{"stream", streamType, openAI, openAIKinds, openAITotal, ""},
		{"stream, CRLF", streamType, stream("\r\n", word, word, last, "[DONE]"), openAIKinds, openAITotal, ""},
		{"stream, data without a space", streamType, strings.ReplaceAll(openAI, "data: ", "data:"), openAIKinds, openAITotal, ""},
		{"stream, no end of line", streamType, strings.TrimSuffix(stream("\n", word, last), "\n\n"), openAIKinds, openAITotal, ""},
		{"stream without a usage", streamType, stream("\n", word, word, "[DONE]"), "", "", "total_tokens=2"},
		{"the same, data without a space", streamType, strings.ReplaceAll(stream("\r\n", word, word, "[DONE]"), "data: ", "data:"), "", "", "total_tokens=2"},
		{"stream of an unknown type", "", openAI, openAIKinds, openAITotal, ""},
		{"usage with each event", streamType, stream("\n", `{"usage":{"prompt_tokens":12,"total_tokens":13,"completion_tokens":1}}`, `{"usage":{"prompt_tokens":12,"total_tokens":14,"completion_tokens":2}}`), "input=12 cached=0 output=2", "total_tokens=14", ""},
		{"OpenAI's responses", streamType, "event: response.created\n" + stream("\n", `{"response":{"status":"in_progress","usage":null}}`, `{"response":{"status":"completed","usage":{"input_tokens":1012,"input_tokens_details":{"cached_tokens":400},"output_tokens":88,"output_tokens_details":{"reasoning_tokens":64},"total_tokens":1100},"user":null}}`), openAIKinds, openAITotal, ""},
		{"Anthropic's message", jsonType, fmt.Sprintf(message, `{}`), messageKinds, "", ""},
		{"a message with a usage in it", jsonType, fmt.Sprintf(message, `{"usage":{"prompt_tokens":1,"completion_tokens":1,"cached_tokens":1}}`), messageKinds, "", ""},
		{"Anthropic's stream", streamType, stream("\n", messageStart, messageText, messageText, messageDelta, `{"type":"message_stop"}`), messageKinds, "", "total_tokens=5"},
		{"Anthropic's stream, all counts at its end", streamType, stream("\n", messageStart, messageText, messageAll), "input=57 cached=401 output=89", "", "total_tokens=3"},
		{"Anthropic's stream breaks", streamType, stream("\n", messageStart, messageText), "", "", "total_tokens=2"},
	}, strangeAnswers(openAI)...)
}

// strangeAnswers are those without a usage that counts, or with much beside it.
func strangeAnswers(openAI string) []answer {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte(openAI))
	_ = z.Close()
	random := make([]byte, 2000)
	for i, r := 0, rand.New(rand.NewPCG(1, 2)); i < len(random); i++ {
		random[i] = byte(r.Uint32())
	}
	quoted := strconv.Quote(last)
	return []answer{
		{"empty", jsonType, "", "", "", ""},
		{"compressed", jsonType, zipped.String(), "", "", ""},
		{"not JSON", "audio/mpeg", string(random), "", "", ""},
		{"a usage in text of the model", streamType, stream("\n", `{"choices":[{"delta":{"content":`+quoted+`}}]}`, `{"choices":[{"delta":{"content":"\ndata: {\"usage\":{"}}]}`), "", "", "total_tokens=2"},
		{"usage is text", jsonType, `{"a":"usage","b":["usage" , "total_tokens"],"usage":"usage","usage" : 5,"total_tokens":"5"}`, "", "", ""},
		{"numbers that are none", jsonType, `{"usage":{"prompt_tokens":-5,"completion_tokens":"88","total_tokens":8.5,"prompt_tokens":{"cached_tokens":4}}}`, "", "", ""},
		{"one number is missing", jsonType, `{"usage":{"prompt_tokens":8,"total_tokens":8}}`, "", "total_tokens=8", ""},
		{"more cached than asked", jsonType, `{"usage":{"completion_tokens":2,"cached_tokens":9,"prompt_tokens":8}}`, "input=0 cached=8 output=2", "", ""},
		{"inner numbers first", jsonType, `{"usage":{"iterations":[{"input_tokens":7,"output_tokens":7}],"details":{"total_tokens":7},"input_tokens":1,"output_tokens":2}}`, "input=1 cached=0 output=2", "total_tokens=7", ""},
		{"too much for Envoy", jsonType, `{"usage":{"prompt_tokens":3000000000,"completion_tokens":2000000000}}`, "input=1000000000 cached=0 output=1000000000", "", ""},
		{"a usage without an end", jsonType, `{"usage":{"prompt_tokens":1,"completion_tokens":2,"more":{` + strings.Repeat(`"usage":{`, 20), "", "", ""},
	}
}

// A usage counts exactly wherever the chunks end: whole, cut in two at each byte, and one byte
// after the other.
func TestUsageScriptsAtAnyCut(t *testing.T) {
	envoytest.Need(t)
	for _, file := range usageScripts {
		t.Run(file, func(t *testing.T) {
			r := startReader(t, file)
			for _, a := range answers() {
				want := a.want(file)
				for _, size := range []int{1, 2, 7, max(len(a.body), 1)} {
					if got, _ := r.pieces(t, a, size); got != want {
						t.Errorf("%s in pieces of %d bytes: got %q, want %q", a.name, size, got, want)
					}
				}
				wrong := slices.DeleteFunc(r.lines(t, a, "pairs"), func(line string) bool { return strings.HasSuffix(line, "\t"+want) })
				if len(wrong) > 0 {
					t.Errorf("%s, cut in two: %d of %d cuts are wrong, such as %q, want %q", a.name, len(wrong), len(a.body)+1, wrong[0], want)
				}
			}
		})
	}
}

// A usage of up to 4,096 bytes counts, in an event of any size. A longer one does not, and the
// ones after it do.
func TestUsageScriptOfLargeEvents(t *testing.T) {
	envoytest.Need(t)
	r := startReader(t, "llm/envoy.yaml")
	long := func(n int) string {
		return `{"usage":{"prompt_tokens":5,"completion_tokens":6,"pad":"` + strings.Repeat("x", n-len(`"usage":{"prompt_tokens":5,"completion_tokens":6,"pad":""}`)) + `"}}`
	}
	event := `{"response":{"text":"` + strings.Repeat(`\"usage\": {}word `, 1<<16) + `",` + openAIUsage + `}}`
	for _, a := range []answer{
		{name: "an event of a megabyte", contentType: streamType, body: stream("\n", word, event), kinds: openAIKinds},
		{name: "the longest usage", contentType: jsonType, body: long(4096), kinds: "input=5 cached=0 output=6"},
		{name: "a longer usage", contentType: jsonType, body: long(4097)},
		{name: "a usage after a longer one", contentType: streamType, body: stream("\n", long(10_000), last), kinds: openAIKinds},
	} {
		for _, size := range []int{100, 1000, 16384, len(a.body)} {
			got, read := r.pieces(t, a, size)
			if got != a.kinds {
				t.Errorf("%s in pieces of %d bytes: got %q, want %q", a.name, size, got, a.kinds)
			}
			if most := 2*len(a.body) + 500_000; read > most {
				t.Errorf("%s in pieces of %d bytes: the script read %d bytes of %d, want at most %d", a.name, size, read, len(a.body), most)
			}
		}
	}
}

// Random events with random spaces in random pieces count as their numbers say.
func TestUsageScriptsAtRandom(t *testing.T) {
	envoytest.Need(t)
	random := rand.New(rand.NewPCG(uint64(len(usageScripts)), 21))
	spaces := func() string { return strings.Repeat(" ", random.IntN(4)) + strings.Repeat("\n\t", random.IntN(2)) }
	for _, file := range usageScripts {
		r := startReader(t, file)
		for range 200 {
			input, output := random.IntN(1_000_000), random.IntN(100_000)
			cached := random.IntN(input + 1)
			fields := []string{
				fmt.Sprintf(`"prompt_tokens"%s:%s%d`, spaces(), spaces(), input), fmt.Sprintf(`"completion_tokens"%s:%d`, spaces(), output),
				fmt.Sprintf(`"total_tokens":%s%d`, spaces(), input+output), fmt.Sprintf(`"prompt_tokens_details":{%s"cached_tokens"%s:%d}`, spaces(), spaces(), cached),
			}
			random.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
			usage := `"usage"` + spaces() + ":" + spaces() + "{" + strings.Join(fields, spaces()+",") + spaces() + "}"
			a := answer{
				contentType: jsonType, body: strings.Repeat(word, random.IntN(3)) + "{" + usage + spaces() + "," + strings.Repeat(word, random.IntN(2)),
				kinds: fmt.Sprintf("input=%d cached=%d output=%d", input-cached, cached, output), total: fmt.Sprintf("total_tokens=%d", input+output),
			}
			if got, _ := r.pieces(t, a, 1+random.IntN(200)); got != a.want(file) {
				t.Fatalf("%s: %s: got %q, want %q", file, a.body, got, a.want(file))
			}
		}
	}
}

// For a client that goes away the last report counts: each usage from its last byte on, and
// nothing before the first.
func TestUsageScriptAsItComes(t *testing.T) {
	envoytest.Need(t)
	r := startReader(t, "llm/envoy.yaml")
	const first, second = `{"usage":{"prompt_tokens":12,"completion_tokens":1}`, `{"usage":{"prompt_tokens":12,"completion_tokens":20}`
	for _, test := range []struct {
		a    answer
		want []string
	}{
		{answer{contentType: streamType, body: first + "}\n" + second + "}"}, []string{
			fmt.Sprintf("%d\tinput=12 cached=0 output=1", len(first)), fmt.Sprintf("%d\tinput=12 cached=0 output=20", len(first+"}\n"+second)),
		}},
		{answer{contentType: streamType, body: messageStart + messageDelta}, []string{fmt.Sprintf("%d\t%s", len(messageStart+messageDelta)-1, messageKinds)}},
	} {
		if got := r.lines(t, test.a, "bytes"); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", test.a.body, got, test.want)
		}
	}
}

// A script reads each byte of a stream once or twice, and not thousands of bytes for each event.
func TestUsageScriptsReadOnce(t *testing.T) {
	envoytest.Need(t)
	events := slices.Repeat([]string{word}, 200)
	a := answer{name: "200 events", contentType: streamType, body: stream("\n", append(events, last, "[DONE]")...)}
	for _, file := range usageScripts {
		_, read := startReader(t, file).pieces(t, a, len(stream("\n", word)))
		t.Logf("%s: %d bytes read of %d, %.2f times", file, read, len(a.body), float64(read)/float64(len(a.body)))
		if 2*read > 5*len(a.body) {
			t.Errorf("%s: the script read %d bytes of an answer of %d, want at most 2.5 times as many", file, read, len(a.body))
		}
	}
}
