import { openAdjust } from "./adjust.js";
import { amount } from "./amounts.js";
import { ask, every, inNamespace } from "./api.js";
import { Chart } from "./chart.js";
import { byID, make, nameText, show } from "./dom.js";
import { limitText } from "./limittext.js";

const span = 120_000; // ms

// watchBalances draws the balance of each limit of each bucket of an entity, each second, until
// the function that it returns is called.
export function watchBalances(id, on) {
  const part = byID("bucket");
  const lines = new Map(); // by bucket and limit
  byID("balances").replaceChildren();
  byID("adjusted").textContent = "";
  show(part);
  const stop = every(1000, on, async () => {
    try {
      const answer = await ask(inNamespace("buckets") + "?" + new URLSearchParams({ entity: id, size: 20 }));
      if (on()) render(lines, answer.items, Date.now());
      show(part);
    } catch (error) {
      show(part, error);
      if (error.status === 501) stop(); // the store of this service has no balances to read
    }
  });
  return stop;
}

function render(lines, buckets, now) {
  for (const bucket of buckets) {
    for (const limit of bucket.limits) {
      if (limit.available === undefined) continue;
      const key = JSON.stringify([bucket.resource, bucket.variant, limit.name]);
      if (!lines.has(key)) lines.set(key, newLine(bucket, limit));
      const line = lines.get(key);
      line.points.push({ time: now, value: limit.available });
      while (now - line.points[0].time > span) line.points.shift();
      line.value.textContent = amount(limit.name, limit.available);
      line.of.textContent = ` of ${limitText(limit.name, limit.limit)} `;
      line.chart.render([{ class: limit.available < 0 ? "s1" : "s2", points: line.points }], now, 0, capacityOf(limit.limit));
    }
  }
  if (lines.size === 0) byID("balances").replaceChildren(make("p", { class: "about" }, "no bucket of this ID is in use"));
}

function newLine(bucket, limit) {
  const value = make("strong");
  const of = make("span");
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `Balance of ${limit.name} for ${nameText(bucket.resource)} in the last two minutes`);
  if (byID("balances").querySelector("p.about")) byID("balances").replaceChildren();
  const verbs = ["reset", "set", "top-up"].map((verb) => verbButton(verb, bucket, limit, value));
  byID("balances").append(make("div", { "data-limit": limit.name },
    make("p", { class: "legend" }, make("span", {}, `${nameText(bucket.resource)} ${limit.name}${bucket.source ? ` (${bucket.source})` : ""}${bucket.shadow ? " (shadow)" : ""} `, value, of), make("span", { class: "verbs" }, ...verbs)), svg));
  return { value, of, points: [], chart: new Chart(svg, span) };
}

// verbButton opens the dialog for a verb. value is the element with the balance.
function verbButton(verb, bucket, limit, value) {
  return make("button", {
    type: "button", class: "link operate", "data-verb": verb,
    "aria-label": `${verb} ${limit.name} for ${nameText(bucket.resource)}`,
    click: () => openAdjust(verb, bucket, limit, value.textContent),
  }, verb);
}

// capacityOf returns the capacity of a limit.
const capacityOf = (limit) => limit.burst || parseInt(typeof limit === "string" ? limit : limit.rate, 10) || 1;
