// Charts over time, drawn by uPlot.
import uPlot from "./uplot.js";
import { clock, day, month } from "./times.js";

const rounded = new Intl.NumberFormat("en", { maximumSignificantDigits: 3, notation: "compact" });
const hour = 3600; // seconds

// TimeChart draws series of numbers over time into an element. bars draws bars in place of lines, each of width
// seconds. at is called with the index of the point under the cursor, or undefined.
export class TimeChart {
  constructor(holder, { bars = 0, at = () => {} } = {}) {
    this.holder = holder;
    this.bars = bars;
    this.at = at;
    this.watch = new ResizeObserver(() => this.chart?.setSize(this.size()));
    this.watch.observe(holder);
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.repaint = () => { this.drop(); if (this.last) this.render(...this.last); };
    this.scheme.addEventListener("change", this.repaint);
  }

  // render draws series of {name, color, values} at times, in seconds, from one time to another. color names a
  // property of the style sheet. most is a value that the scale includes.
  render(times, series, { from, to, most = 1 }) {
    if (times.length === 0) return; // uPlot would not come to an end
    this.last = [times, series, { from, to, most }];
    const names = JSON.stringify(series.map((s) => [s.name, s.color]));
    if (names !== this.names) this.drop();
    this.range = [from, to];
    this.most = most;
    const data = [times, ...series.map((s) => s.values)];
    if (this.chart) {
      this.chart.setData(data);
      return;
    }
    this.names = names;
    this.chart = new uPlot(this.options(series), data, this.holder);
  }

  options(series) {
    const style = getComputedStyle(this.holder);
    const color = (name) => style.getPropertyValue(name).trim();
    const font = "12px system-ui, sans-serif";
    const axis = { stroke: color("--quiet"), font, grid: { stroke: color("--line"), width: 1 }, ticks: { show: false } };
    const bars = this.bars ? uPlot.paths.bars({ size: [0.8, 40], align: 1 }) : undefined;
    return {
      ...this.size(), legend: { show: false }, padding: [8, 8, 0, 0],
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "UTC"),
      cursor: { y: false, points: { show: !this.bars }, drag: { x: false, y: false } },
      scales: {
        x: { range: () => this.range },
        y: { range: (_, low, high) => [Math.min(0, low ?? 0), Math.max(this.most, high ?? 0) * 1.05] },
      },
      axes: [
        { ...axis, space: 110, values: (_, splits) => splits.map((at) => this.label(at)) },
        { ...axis, size: 56, space: 28, values: (_, splits) => splits.map((v) => rounded.format(v)) },
      ],
      series: [{}, ...series.map((s) => ({
        label: s.name, stroke: color(s.color), width: this.bars ? 0 : 2, fill: this.bars ? color(s.color) : color(s.color) + "22",
        paths: bars, points: { show: false },
      }))],
      hooks: { setCursor: [(u) => this.at(u.cursor.idx ?? undefined)] },
    };
  }

  // label names a time of the axis: its day where the axis spans days, else its time of day, in minutes.
  label(at) {
    const span = this.range[1] - this.range[0];
    if (span > 100 * 24 * hour) return month(at * 1000);
    if (span > 2 * 24 * hour) return day(at * 1000);
    return at % 60 === 0 ? clock(at * 1000) : "";
  }

  size() {
    const box = this.holder.getBoundingClientRect();
    return { width: Math.max(120, Math.floor(box.width)), height: Math.max(80, Math.floor(box.height)) };
  }

  drop() {
    this.chart?.destroy();
    this.chart = undefined;
    this.names = "";
  }

  // end removes the chart.
  end() {
    this.watch.disconnect();
    this.scheme.removeEventListener("change", this.repaint);
    this.drop();
  }
}
