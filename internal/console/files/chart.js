import { draw } from "./dom.js";

const rounded = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

// Chart draws numbers over time as lines. series are arrays of {time, value}, in ms; names of
// classes give them colours.
export class Chart {
  constructor(svg, span) {
    this.svg = svg;
    this.span = span; // ms
  }

  // render draws series up to a time. least and most are what the scale shows at least.
  render(series, now, least = 0, most = 1) {
    const { width, height } = this.size();
    const values = series.flatMap((s) => s.points.map((p) => p.value));
    const low = Math.min(least, ...values);
    const high = Math.max(most, ...values);
    const x = (time) => width - ((now - time) / this.span) * width;
    const y = (value) => 6 + (1 - (value - low) / (high - low || 1)) * (height - 12);
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.replaceChildren(
      draw("line", { class: "axis", x1: 0, x2: width, y1: y(low), y2: y(low) }),
      draw("line", { class: "axis", x1: 0, x2: width, y1: y(high), y2: y(high) }),
      ...series.map((s) => draw("polyline", {
        class: "series " + s.class,
        points: s.points.filter((p) => now - p.time <= this.span).map((p) => `${x(p.time).toFixed(1)},${y(p.value).toFixed(1)}`).join(" "),
      })),
      draw("text", { class: "scale", x: 2, y: y(high) + 12 }, rounded.format(high)),
      draw("text", { class: "scale", x: 2, y: y(low) - 3 }, rounded.format(low)),
    );
  }

  size() {
    const box = this.svg.getBoundingClientRect();
    return { width: Math.max(100, Math.round(box.width)), height: Math.max(60, Math.round(box.height)) };
  }
}
