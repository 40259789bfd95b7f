import { amount } from "./amounts.js";
import { ask, askTop, every, inNamespace } from "./api.js";
import { auditText } from "./audit.js";
import { TimeChart } from "./chart.js";
import { byID, entityLink, make, mark, nameText, number, replace, show } from "./dom.js";
import { capacityOf, limitText } from "./limittext.js";
import { ago, clock, since, stamp } from "./times.js";

const least = 300; // seconds that the chart shows at least
const colors = { allowed: "--good", denied: "--bad", late: "--warn", fallback: "--warn", unlimited: "--calm", unmatched: "--other", shadow_denied: "--warn" };
const lines = 12; // of the time line

// openNow shows what goes on, until the function that it returns is called. can are the abilities of the store.
export function openNow(can) {
  const chart = new DecisionChart();
  const happened = new Happened();
  const stops = [
    every(2000, () => true, async () => {
      try {
        const fleet = await ask("/v1/fleet");
        showHealth(fleet);
        chart.render(fleet);
        happened.fleet(fleet);
        show(byID("live"));
      } catch (error) {
        show(byID("live"), error);
      }
    }),
    watchTop(),
  ];
  if (can.audit) {
    stops.push(every(5000, () => true, async () => {
      try {
        happened.changes((await ask(inNamespace("audit") + "?" + new URLSearchParams({ size: lines }))).items);
        show(byID("lately"));
      } catch (error) {
        show(byID("lately"), error);
      }
    }));
  }
  return () => { stops.forEach((stop) => stop()); chart.end(); };
}

// showHealth writes a line each about the store, the configuration, the replicas, leases and the aggregator.
function showHealth(fleet) {
  byID("health").replaceChildren(...healthOf(fleet).map(({ name, state, text }) => make("li", { class: state, "data-name": name },
    make("b", {}, name), make("span", {}, text), make("span", { class: "hide" }, state === "good" ? "" : " needs attention"))));
}

function healthOf(fleet) {
  const replicas = fleet.replicas || [];
  const of = (n) => (replicas.length === 1 ? "" : ` on ${n} of ${replicas.length} replicas`);
  return [storeHealth(replicas, of), configurationHealth(replicas, of), replicaHealth(replicas),
    ...leaseHealth(replicas), ...aggregatorHealth(fleet.aggregator)];
}

function storeHealth(replicas, of) {
  const stores = replicas.map((r) => r.store).filter(Boolean);
  if (stores.length === 0) return { name: "Store", state: "good", text: "embedded, in this process" };
  const bad = stores.filter((s) => s.state !== "available");
  const kind = stores[0].type;
  if (bad.length === 0) return { name: "Store", state: "good", text: `${kind}, available` + (stores[0].since ? ` for ${since(stores[0].since)}` : "") };
  const states = [...new Set(bad.map((s) => s.state))].join(", ");
  return { name: "Store", state: "bad", text: `${kind}, ${states}${of(bad.length)} for ${since(bad[0].since || Date.now())}: ${bad[0].policy} decides` };
}

function configurationHealth(replicas, of) {
  const refused = replicas.filter((r) => r.configuration?.error);
  if (refused.length > 0) return { name: "Configuration", state: "bad", text: `the newest is refused${of(refused.length)}: ${refused[0].configuration.error}` };
  const hashes = new Set(replicas.map((r) => r.configuration?.hash));
  if (hashes.size > 1) return { name: "Configuration", state: "warn", text: `${hashes.size} different ones are in force` };
  const loaded = replicas.map((r) => r.configuration?.loaded_at).filter(Boolean).sort().at(-1);
  return { name: "Configuration", state: "good", text: loaded ? `in force since ${stamp(loaded).slice(0, 16)}` : "in force" };
}

function replicaHealth(replicas) {
  const away = replicas.filter((r) => !r.ready);
  const hosts = [...new Set(replicas.map((r) => r.host).filter(Boolean))].sort();
  const names = hosts.length > 3 ? `${hosts.slice(0, 3).join(", ")} and ${hosts.length - 3} more hosts` : hosts.join(", ");
  if (away.length > 0) return { name: "Replicas", state: "warn", text: `${away.length} of ${replicas.length} not ready: ${away[0].reason || "no reason given"}` };
  const versions = new Set(replicas.map((r) => r.version));
  return { name: "Replicas", state: "good", text: `${replicas.length} ready` + (names ? ` on ${names}` : "") + (versions.size > 1 ? `, of ${versions.size} versions` : "") };
}

function leaseHealth(replicas) {
  if (!replicas.some((r) => r.store)) return [];
  const held = replicas.reduce((sum, r) => sum + (r.leases || 0), 0);
  return [{ name: "Leases", state: "good", text: held === 0 ? "none held" : `${number.format(held)} held` }];
}

// aggregatorHealth has the words of the service. A next step needs a person.
function aggregatorHealth(aggregator) {
  if (!aggregator) return [];
  const { state, text, do: step } = aggregator;
  const good = !step && ["current", "not_needed"].includes(state);
  return [{ name: "Aggregator", state: good ? "good" : step ? "bad" : "warn", text: text + (step ? `. Next: ${step}` : "") }];
}

// DecisionChart shows decisions a second by result.
class DecisionChart {
  constructor() {
    this.chart = new TimeChart(byID("live-chart"), { at: (index) => { this.index = index; this.legend(); } });
  }

  // render draws the steps that are over. Steps before the first decision are left out, down to some minutes.
  render({ begin, complete, step_seconds: step, results, time }) {
    const names = Object.keys(results).filter((name) => name in { allowed: 1, denied: 1 } || results[name].some(Boolean)).sort((a, b) => place(a) - place(b) || a.localeCompare(b));
    const first = Math.floor(Date.parse(begin) / 1000);
    const told = Math.round(Date.parse(complete) / 1000 - first) / step; // steps that every replica has told
    const count = Math.min(Math.floor(told), ...names.map((name) => results[name].length));
    if (count < 1) {
      byID("live-about").textContent = `the first numbers come in ${step} s`;
      return;
    }
    const to = first + count * step;
    let from = Math.max(0, Math.min(...names.map((name) => { const at = results[name].findIndex(Boolean); return at < 0 ? count : at; })) - 1);
    from = Math.max(0, Math.min(from, count - Math.ceil(least / step)));
    this.times = Array.from({ length: count - from }, (_, i) => first + (from + i) * step);
    this.series = names.map((name) => ({ name, color: colors[name] || "--other", values: results[name].slice(from, count).map((n) => n / step) }));
    this.chart.render(this.times, this.series, { from: Math.min(first + from * step, to - least), to: Math.max(to - step, first) });
    byID("live-about").textContent = `of all replicas, by result; UTC, ${stamp(time).slice(11)}`;
    this.legend();
  }

  // legend writes the numbers under the cursor, or the last ones.
  legend() {
    if (!this.series) return;
    const at = this.index ?? this.times.length - 1;
    byID("live-legend").replaceChildren(...this.series.map((s) => make("span", { "data-result": s.name },
      make("i", { class: "dot " + (colors[s.name] || "--other").slice(2) }), `${s.name} `, make("strong", {}, number.format(Math.round((s.values[at] || 0) * 10) / 10)))),
      this.index === undefined || this.times[at] === undefined ? "" : make("span", { class: "quiet" }, clock(this.times[at] * 1000)));
  }

  end() { this.chart.end(); }
}

const order = ["allowed", "denied"];
const place = (name) => (order.includes(name) ? order.indexOf(name) : order.length);

// watchTop shows the entities with the most decisions, and the limit that decides about each.
function watchTop() {
  const part = byID("top");
  const reasons = new Map(); // the text of a limit by its entity, resource and name
  const read = async () => {
    const by = part.querySelector("input[name=by]:checked").value;
    try {
      const items = await askTop({ by, size: 10 });
      const whys = await Promise.all(items.map((row) => explainLimit(row, reasons)));
      if (by !== part.querySelector("input[name=by]:checked").value) return;
      replace(byID("top-rows"), items.map((row, i) => topRow(row, whys[i])), by === "denied" ? "nobody in the last minute" : "none in the last minute");
      show(part);
    } catch (error) {
      show(part, error);
    }
  };
  part.onchange = read;
  const stop = every(2000, () => true, read);
  return () => { part.onchange = null; stop(); };
}

function topRow(row, why) {
  return make("tr", {}, make("td", {}, entityLink(row.entity)), make("td", {}, make("bdi", {}, nameText(row.resource))), make("td", {}, row.limit), make("td", { class: "quiet" }, why),
    make("td", { class: "number", title: `${amount(row.limit, row.tokens)} tokens` }, number.format(row.decisions)));
}

// explainLimit returns the rate of the limit of a row and where it comes from: that of the emptiest bucket with the
// limit, which may be of a plan or a rule. It asks once for each.
async function explainLimit({ entity, resource, limit }, reasons) {
  if (typeof entity !== "string" || typeof resource !== "string") return "";
  const key = JSON.stringify([byID("namespace").value, entity, resource]);
  if (reasons.size > 200) reasons.clear();
  if (!reasons.has(key)) {
    const asked = (...path) => ask(inNamespace(...path) + "?" + new URLSearchParams({ entity, resource })).then((list) => list.items, () => []);
    reasons.set(key, Promise.all([asked("limits", "effective"), asked("buckets")]));
    setTimeout(() => reasons.delete(key), 30_000);
  }
  const [levels, buckets] = await reasons.get(key);
  const left = (b) => b.limits.find((l) => l.name === limit);
  const part = (b) => left(b).available / capacityOf(left(b).limit);
  const [own] = buckets.filter((b) => !b.shadow && left(b)?.available !== undefined).sort((a, b) => part(a) - part(b));
  if (own?.source) return `${limitText(limit, left(own).limit)}, ${own.source}`;
  const found = levels.find((l) => l.name === limit);
  return found ? `${limitText(limit, found.limit)}, ${found.source}` : "of a plan or a rule";
}

const kinds = { refused: "bad", outage: "bad", budget: "warn", reload: "good", recovered: "good" };

// Happened is one time line of events of the fleet and of changes.
class Happened {
  constructor() {
    this.events = [];
    this.audit = [];
  }

  fleet({ events, replicas }) {
    const hosts = new Map((replicas || []).map((r) => [r.id, r.host]));
    const name = (id) => ((replicas || []).length > 1 ? hosts.get(id) || id : "");
    this.events = (events || []).map((e) => ({ time: e.time, kind: e.kind, text: e.text, where: name(e.replica) }));
    this.render();
  }

  changes(audit) {
    this.audit = audit.map((e) => ({ time: e.time, kind: "change", ...auditText(e) }));
    this.render();
  }

  render() {
    const all = [...this.events, ...this.audit].sort((a, b) => Date.parse(b.time) - Date.parse(a.time)).slice(0, lines);
    replace(byID("events"), all.map((e) => make("li", { class: kinds[e.kind] || "calm" },
      make("time", { datetime: e.time, title: stamp(e.time) + " UTC" }, ago(e.time)), mark(e.kind, kinds[e.kind]),
      make("span", {}, e.link || "", e.text), e.where ? make("span", { class: "quiet" }, e.where) : "")), "nothing yet");
  }
}
