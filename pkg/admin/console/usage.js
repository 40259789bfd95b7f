import { amount } from "./amounts.js";
import { ask, every, inNamespace } from "./api.js";
import { bar } from "./balances.js";
import { TimeChart } from "./chart.js";
import { byID, make, nameText, show } from "./dom.js";
import { clock, day, month } from "./times.js";

const hour = 3600; // seconds
const windows = {
  hour: { count: 24, length: hour, text: "the last 24 hours", name: (at) => `${day(at)} ${clock(at)}` },
  day: { count: 30, length: 24 * hour, text: "the last 30 days", name: day },
  month: { count: 12, length: 30 * 24 * hour, text: "the last 12 months", name: month },
};

// watchUsage draws the usage of an entity, every ten seconds, until the function that it returns is called. A
// choice below the chart has the limit that is drawn.
export function watchUsage(id, on) {
  const part = byID("usage");
  byID("usages").replaceChildren();
  show(part);
  const view = new View();
  const chosen = () => part.querySelector("input[name=window]:checked").value;
  const read = async () => {
    const window = chosen();
    try {
      const begins = beginsOf(window);
      const query = new URLSearchParams({ entity: id, window, from: new Date(begins[0] * 1000).toISOString(), size: 1000, budgets: true });
      const answer = await ask(inNamespace("usage") + "?" + query);
      if (on() && window === chosen()) view.render(window, begins, answer);
      show(part);
    } catch (error) {
      show(part, error);
    }
  };
  const stop = every(10_000, on, read);
  part.onchange = read;
  return () => { part.onchange = null; stop(); view.end(); };
}

// beginsOf returns the begins of the windows up to now, in seconds.
function beginsOf(window) {
  const { count, length } = windows[window];
  const now = new Date();
  if (window === "month") return Array.from({ length: count }, (_, i) => Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - count + 1 + i) / 1000);
  const last = Math.floor(now / 1000 / length) * length;
  return Array.from({ length: count }, (_, i) => last - (count - 1 - i) * length);
}

// View is the chart of one limit, and the totals of all.
class View {
  constructor() {
    this.picked = "";
    this.about = make("p", { class: "quiet" });
    this.holder = make("div", { class: "chart", role: "img" });
    this.table = make("div", { class: "wide" });
  }

  render(window, begins, answer) {
    this.window = window;
    this.begins = begins;
    this.all = sums(begins, answer.items);
    if (this.all.length === 0) {
      this.end();
      byID("usages").replaceChildren(make("p", { class: "quiet" }, `none in ${windows[window].text}`));
      return;
    }
    if (!this.all.some((of) => of.title === this.picked)) this.picked = this.all[0].title;
    this.draw();
    this.list(answer.next);
  }

  draw() {
    const of = this.all.find((each) => each.title === this.picked);
    const { length, name, text } = windows[this.window];
    if (!this.chart || this.drawn !== this.window) {
      this.chart?.end();
      byID("usages").replaceChildren(this.about, this.holder, this.table);
      this.chart = new TimeChart(this.holder, { bars: length, at: (i) => this.say(i) });
      this.drawn = this.window;
    }
    this.name = name;
    this.say = (i) => {
      const at = i === undefined ? "" : `: ${amount(of.limit, of.values[i])} in ${name(this.begins[i] * 1000)}`;
      this.about.textContent = `${of.title}${of.budget ? `, budget ${amount(of.limit, of.budget)} a ${this.window}` : ""}${at}`;
    };
    this.say();
    this.holder.setAttribute("aria-label", `${of.title} by ${this.window} in ${text}: ${amount(of.limit, of.total)}`);
    this.holder.dataset.values = JSON.stringify(of.values);
    this.chart.render(this.begins, [{ name: of.title, color: "--calm", values: of.values }], { from: this.begins[0], to: this.begins.at(-1) + length, most: of.budget || 1 });
  }

  // list shows the totals, and the use of the window at hand as a bar of its budget.
  list(more) {
    const budgets = this.all.some((of) => of.budget);
    const rows = this.all.map((of) => {
      const pick = make("input", { type: "radio", name: "drawn", checked: of.title === this.picked, change: () => { this.picked = of.title; this.draw(); } });
      return make("tr", {}, make("td", {}, make("label", { class: "check" }, pick, make("bdi", {}, of.title))),
        make("td", { class: "number" }, amount(of.limit, of.total)),
        !budgets ? "" : make("td", {}, of.budget ? bar(Math.min(1, of.values.at(-1) / of.budget), `${amount(of.limit, of.values.at(-1))} of ${amount(of.limit, of.budget)}`, of.values.at(-1) >= of.budget ? "bad" : "good", "of its budget") : ""));
    });
    this.table.replaceChildren(make("table", {}, make("thead", {}, make("tr", {}, make("th", {}, "Limit"), make("th", { class: "number" }, `Used in ${windows[this.window].text}`), budgets ? make("th", {}, `Of the budget of this ${this.window}`) : "")), make("tbody", {}, ...rows)));
    if (more) this.table.append(make("p", { class: "quiet" }, "There is more: ratelimit list usage shows all of it."));
  }

  say() {}

  end() {
    this.chart?.end();
    this.chart = undefined;
  }
}

// sums returns the use of each limit of each resource by window, the most used first.
function sums(begins, items) {
  const all = new Map();
  for (const item of items) {
    const at = begins.indexOf(Math.round(Date.parse(item.start) / 1000));
    for (const [limit, tokens] of Object.entries(item.used)) {
      const title = `${nameText(item.resource)} ${limit}`;
      if (!all.has(title)) all.set(title, { title, limit, total: 0, values: new Array(begins.length).fill(0) });
      const of = all.get(title);
      of.budget = item.budget?.[limit] || of.budget;
      if (at >= 0) { of.values[at] += tokens; of.total += tokens; }
    }
  }
  return [...all.values()].sort((a, b) => Boolean(b.budget) - Boolean(a.budget) || b.total - a.total || a.title.localeCompare(b.title));
}
