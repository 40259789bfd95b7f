import { ask, every } from "./api.js";
import { Chart } from "./chart.js";
import { byID, make, number, show } from "./dom.js";

const span = 120_000; // ms
const first = ["allowed", "denied"]; // in colours of their own

// watchDecisions shows the decisions of each second by result, until the function that it
// returns is called.
export function watchDecisions() {
  const part = byID("live");
  const chart = new Chart(byID("live-chart"), span);
  const points = new Map(); // by result
  let before;
  return every(1000, () => true, async () => {
    try {
      const answer = await ask("/v1/decisions");
      const now = Date.parse(answer.time);
      // A restarted service counts from 0.
      if (before && before.since === answer.since && now > before.now) note(points, answer.results, before, now);
      before = { now, since: answer.since, results: answer.results };
      render(chart, points, now);
      show(part);
    } catch (error) {
      show(part, error);
    }
  });
}

function note(points, results, before, now) {
  for (const [name, count] of Object.entries(results)) {
    if (!points.has(name)) points.set(name, []);
    const all = points.get(name);
    all.push({ time: now, value: ((count - (before.results[name] || 0)) * 1000) / (now - before.now) });
    while (all.length > 0 && now - all[0].time > span) all.shift();
  }
}

function render(chart, points, now) {
  const seen = (name) => first.includes(name) || points.get(name).some((p) => p.value > 0);
  const names = [...points.keys()].filter(seen).sort((a, b) => place(a) - place(b) || a.localeCompare(b));
  const series = names.map((name, i) => ({ name, class: "s" + Math.min(i, 5), points: points.get(name) }));
  chart.render(series, now);
  byID("live-legend").replaceChildren(...series.map((s) => make("span", { "data-result": s.name },
    make("b", { class: s.class }), `${s.name} `, make("strong", {}, number.format(Math.round(s.points.at(-1).value * 10) / 10)))));
}

const place = (name) => (first.includes(name) ? first.indexOf(name) : first.length);
