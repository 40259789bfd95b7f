import { amount } from "./amounts.js";
import { ask, every, inNamespace } from "./api.js";
import { Bars } from "./chart.js";
import { byID, make, nameText, show } from "./dom.js";

const hour = 3_600_000; // ms
const windows = { hour: { length: hour, count: 24, text: "24 hours", each: "an hour" }, day: { length: 24 * hour, count: 30, text: "30 days", each: "a day" } };

// watchUsage draws the usage of an entity by hour or by day, every ten seconds, until the
// function that it returns is called.
export function watchUsage(id, on) {
  const part = byID("usage");
  byID("usages").replaceChildren();
  show(part);
  const read = async () => {
    const chosen = part.querySelector("input[name=window]:checked").value;
    const window = windows[chosen];
    const first = (Math.floor(Date.now() / window.length) - window.count + 1) * window.length;
    try {
      const query = new URLSearchParams({ entity: id, window: chosen, from: new Date(first).toISOString(), size: 1000, budgets: true });
      const answer = await ask(inNamespace("usage") + "?" + query);
      if (on() && chosen === part.querySelector("input[name=window]:checked").value) render(window, first, answer);
      show(part);
    } catch (error) {
      show(part, error);
      if (error.status === 501) stop(); // the store of this service has no usage
    }
  };
  const stop = every(10_000, on, read);
  part.onchange = read;
  return () => { part.onchange = null; stop(); };
}

// render draws the bars of each limit of each resource.
function render(window, first, answer) {
  const used = new Map(); // by resource and limit: limit, values, budget
  for (const item of answer.items) {
    const at = Math.round((Date.parse(item.start) - first) / window.length);
    for (const [limit, tokens] of Object.entries(item.used)) {
      const title = `${nameText(item.resource)} ${limit}`;
      if (!used.has(title)) used.set(title, { limit, values: new Array(window.count).fill(0) });
      const of = used.get(title);
      of.budget = item.budget?.[limit] || of.budget;
      if (at >= 0 && at < window.count) of.values[at] += tokens;
    }
  }
  const charts = [...used].sort(([a], [b]) => a.localeCompare(b)).map(([title, of]) => chart(window, first, title, of));
  byID("usages").replaceChildren(...charts.map((c) => c.element));
  charts.forEach((c) => c.draw()); // their widths are known only now
  if (charts.length === 0) byID("usages").append(make("p", { class: "about" }, `none in the last ${window.text}`));
  if (answer.next) byID("usages").append(make("p", { class: "about" }, "There is more: ratelimit list usage shows all of it."));
}

function chart(window, first, title, { limit, values, budget }) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const total = amount(limit, values.reduce((a, b) => a + b, 0));
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `${title}: ${total} in the last ${window.text}`);
  const name = (i) => new Date(first + i * window.length).toISOString().slice(0, window.length === hour ? 16 : 10).replace("T", " ");
  const of = budget ? ` of ${amount(limit, budget)}` : "";
  const each = budget ? `, budget ${amount(limit, budget)} ${window.each}` : "";
  const bars = values.map((value, i) => ({ value, title: `${name(i)} UTC: ${amount(limit, value)}${of}` }));
  return {
    element: make("div", { class: "bars" }, make("p", { class: "legend" }, make("span", {}, `${title} `, make("strong", {}, total), ` in the last ${window.text}${each}`)), svg),
    draw: () => new Bars(svg).render(bars),
  };
}
