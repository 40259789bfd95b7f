package envoytest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/ratelimit/ratelimit/test/envoytest"
)

// usageScripts are the files whose Lua reads the usage of an answer.
var usageScripts = []string{"llm/envoy.yaml", "envoy/llm-stable-filters.yaml", "istio/tokens.yaml"}

// usageScript returns the Lua of a file below examples that reads answers.
func usageScript(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(example(t, filepath.Join("..", file)))
	if err != nil {
		t.Fatal(err)
	}
	var scripts []string
	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var document any
		if decoder.Decode(&document) != nil {
			break
		}
		scripts = append(scripts, luaOf(document)...)
	}
	scripts = slices.DeleteFunc(scripts, func(s string) bool { return !strings.Contains(s, "bodyChunks") })
	if len(scripts) != 1 {
		t.Fatalf("%s: got %d scripts that read chunks, want 1", file, len(scripts))
	}
	return scripts[0]
}

// luaOf returns the scripts in a part of a document.
func luaOf(part any) []string {
	var scripts []string
	switch part := part.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(part)) {
			if script, ok := part[key].(string); ok && key == "inline_string" {
				scripts = append(scripts, script)
			}
			scripts = append(scripts, luaOf(part[key])...)
		}
	case []any:
		for _, p := range part {
			scripts = append(scripts, luaOf(p)...)
		}
	}
	return scripts
}

// reader is an Envoy that runs a script on answers cut into chunks, which are the test's own:
// those that arrive by a connection cannot be chosen.
type reader struct{ envoy *envoytest.Envoy }

// before counts the bytes that functions of strings read for the script: up to the end of a match,
// or all.
const before = `
local bytes = 0
local length, find, cut = string.len, string.find, string.sub
for name, real in pairs({find = find, match = string.match, gmatch = string.gmatch, gsub = string.gsub, sub = string.sub}) do
  string[name] = function(s, pattern, init, plain)
    local from, to = 1, length(s)
    if name == "find" or name == "match" then
      from = init or 1
      to = select(2, find(s, pattern, from, plain)) or to
    elseif name == "sub" then
      to = length(real(s, pattern, init))
    end
    bytes = bytes + math.max(to - from + 1, 0)
    return real(s, pattern, init, plain)
  end
end
`

// after gives the script the body of a request as the body of an answer. Each line of the reply
// is an outcome; after x-cut: pairs the place of the cut is before it, and after x-cut: bytes
// how many bytes had come.
const after = `
local respond = envoy_on_response
envoy_on_response = nil

local function text(metadata)
  local parts = {}
  for _, key in ipairs({"input", "cached", "output", "total_tokens"}) do
    if metadata[key] then parts[#parts + 1] = string.format("%s=%.0f", key, metadata[key]) end
  end
  return table.concat(parts, " ")
end

local function run(status, type, chunks, progress)
  local metadata = {}
  local handle = {}
  function handle:headers() return {get = function(_, name) return ({[":status"] = status, ["content-type"] = type})[name] end} end
  function handle:streamInfo()
    return {dynamicMetadata = function() return {set = function(_, _, key, value) metadata[key] = value end} end}
  end
  function handle:bodyChunks()
    local i = 0
    return function()
      if progress and i > 0 then progress(i, text(metadata)) end
      i = i + 1
      local chunk = chunks[i]
      return chunk and {length = function() return #chunk end, getBytes = function(_, from, length)
        return cut(chunk, from + 1, from + length)
      end}
    end
  end
  respond(handle)
  return text(metadata)
end

local function pieces(body, size)
  local chunks = {}
  for from = 1, #body, size do chunks[#chunks + 1] = body:sub(from, from + size - 1) end
  return chunks
end

function envoy_on_request(handle)
  local status, type = handle:headers():get("x-status"), handle:headers():get("x-content-type")
  local way = handle:headers():get("x-cut")
  local buffer = handle:body()
  local body = buffer and buffer:getBytes(0, buffer:length()) or ""
  local lines = {}
  if way == "pairs" then
    for i = 0, #body do
      lines[#lines + 1] = i .. "\t" .. run(status, type, {body:sub(1, i), "", body:sub(i + 1)})
    end
  elseif way == "bytes" then
    local last = ""
    run(status, type, pieces(body, 1), function(i, outcome)
      if outcome ~= last then lines[#lines + 1] = i .. "\t" .. outcome end
      last = outcome
    end)
  else
    local chunks = pieces(body, tonumber(way))
    bytes = 0
    lines[1] = run(status, type, chunks)
    lines[2] = string.format("%.0f", bytes)
  end
  handle:respond({[":status"] = "200"}, table.concat(lines, "\n"))
end
`

// startReader starts an Envoy with the script of a file.
func startReader(t *testing.T, file string) reader {
	t.Helper()
	script, err := json.Marshal(before + usageScript(t, file) + after)
	if err != nil {
		t.Fatal(err)
	}
	const config = `
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 9901}}}
static_resources:
  listeners:
  - address: {socket_address: {address: 127.0.0.1, port_value: 10000}}
    per_connection_buffer_limit_bytes: 33554432
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: reader
          http_filters:
          - name: script
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua
              default_source_code: {inline_string: %s}
          - name: envoy.filters.http.router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
          route_config: {virtual_hosts: [{name: none, domains: ["*"], routes: [{match: {prefix: /}, direct_response: {status: 500}}]}]}
`
	path := filepath.Join(t.TempDir(), "reader.yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, config, script), 0o600); err != nil {
		t.Fatal(err)
	}
	return reader{envoytest.StartEnvoy(t, path, nil)}
}

// lines runs the script on an answer that is cut as x-cut says, and returns its reply.
func (r reader) lines(t *testing.T, a answer, cut string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	response, err := r.envoy.Post(ctx, "/", a.body, http.Header{"X-Status": {"200"}, "X-Content-Type": {a.contentType}, "X-Cut": {cut}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	reply, err := envoytest.Read(response)
	if err != nil || reply.Code != http.StatusOK {
		t.Fatalf("%s, cut by %s: got %d and %v, want 200", a.name, cut, reply.Code, err)
	}
	return strings.Split(string(reply.Body), "\n")
}

// pieces runs the script on an answer in pieces of that many bytes. It returns the outcome of
// the script, and how many bytes it read, repeated reads included.
func (r reader) pieces(t *testing.T, a answer, size int) (outcome string, bytes int) {
	t.Helper()
	lines := r.lines(t, a, strconv.Itoa(size))
	if len(lines) != 2 {
		t.Fatalf("%s: got %q, want an outcome and a number of bytes", a.name, lines)
	}
	bytes, err := strconv.Atoi(lines[1])
	if err != nil {
		t.Fatal(err)
	}
	return lines[0], bytes
}
