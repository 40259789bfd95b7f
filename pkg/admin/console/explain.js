import { amounts } from "./amounts.js";
import { ask } from "./api.js";
import { byID, entityLink, isPlain, make, mark, nameText, show } from "./dom.js";

// openExplain asks why a call is admitted or denied. It takes nothing.
export function openExplain() {
  const part = byID("question");
  part.onsubmit = async (event) => {
    event.preventDefault();
    show(part);
    byID("explanation").replaceChildren();
    try {
      const x = await ask("/v1/explain", { method: "POST", body: question(byID("entries").value) });
      byID("explanation").replaceChildren(...(x.descriptors ? renderCall(x) : [renderOne(x)]));
    } catch (error) {
      show(part, error);
    }
  };
  return () => {};
}

// question reads a RateLimitRequest, or one KEY=VALUE a line.
function question(text) {
  if (text.trim().startsWith("{")) {
    try {
      return JSON.parse(text);
    } catch (error) {
      throw new Error("This is no JSON: " + error.message);
    }
  }
  const entries = text.split("\n").map((line) => line.trim()).filter(Boolean).map((line) => {
    const at = line.indexOf("=");
    if (at < 1) throw new Error(`“${line}” is no entry: write KEY=VALUE, or paste the request in JSON`);
    return { key: line.slice(0, at), value: line.slice(at + 1) };
  });
  if (!byID("domain").value) throw new Error("Give the domain of these lines.");
  return { domain: byID("domain").value, entries, hits: Number(byID("hits").value) };
}

function renderCall(x) {
  const facts = [["why", x.descriptors.length > 1 && x.why], ["without the store", x.on_unavailable]].filter(([, value]) => value);
  return [verdict(x, "The call"), make("dl", {}, ...facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)])),
    ...x.descriptors.map((d) => make("article", {}, make("h2", {}, make("bdi", {}, d.descriptor)), renderOne(d, x.descriptors.length > 1)))];
}

function verdict(x, what) {
  const wait = x.retry_after ? (x.retry_after === "never" ? ", and never pass" : `, and pass ${/^\d/.test(x.retry_after) ? "in " : ""}${x.retry_after}, if no other request takes tokens`) : "";
  return make("p", { class: "verdict " + (x.admitted ? "good" : "bad") }, `${what} would be ${x.admitted ? "admitted" : "denied"}${wait}.`);
}

function renderOne(x, alone = true) {
  const facts = [
    ["outcome", x.outcome], ["why", x.why], ["rule", x.rule], ["namespace", x.namespace], ["nearest rule", x.nearest && `${x.nearest.rule || "without a name"}: ${x.nearest.why}`],
    ["did you mean", x.did_you_mean], ["domains", x.domains?.join(", ")], ["without the store", x.on_unavailable],
  ].filter(([, value]) => value);
  const part = make("div", { class: "card" }, alone ? verdict(x, "It") : "", make("dl", {}, ...facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, make("bdi", {}, value))])));
  if (x.missed?.length) part.append(make("details", {}, make("summary", {}, `${x.missed.length} rules before do not match`), make("ul", {}, ...x.missed.map((m) => make("li", {}, `${m.rule || "a rule"}: ${m.why}`)))));
  if (x.limits?.length) part.append(limitTable(x.limits));
  for (const s of x.shadows || []) {
    part.append(make("h3", {}, s.rule ? `Shadow rule ${s.rule}` : "Shadow limits", " ", mark(s.would_deny ? "would deny" : "would admit", s.would_deny ? "warn" : "good")));
    if (s.limits?.length) part.append(limitTable(s.limits));
  }
  return part;
}

function limitTable(limits) {
  const head = make("tr", {}, ...["Entity", "Resource", "Limit", "Rate", "From", "Action", "Left"].map((text) => make("th", {}, text)));
  const rows = limits.map((l) => make("tr", { class: l.enough ? "" : "differs" },
    make("td", {}, l.level > 0 ? "↑ " : "", isPlain(l.entity) ? entityLink(l.entity) : nameText(l.entity)), make("td", {}, make("bdi", {}, nameText(l.resource))), make("td", {}, l.limit),
    make("td", {}, amounts(l.limit, l.rate)), make("td", {}, l.source + (l.plan && !l.source.includes(l.plan) ? ` ${l.plan}` : "")), make("td", {}, `${l.action} ${amounts(l.limit, l.amount)}`),
    make("td", {}, amounts(l.limit, l.available), l.enough ? "" : mark("not enough", "bad"))));
  return make("div", { class: "wide" }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)));
}
