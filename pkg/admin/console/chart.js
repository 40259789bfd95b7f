import { draw } from "./dom.js";

const rounded = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

// Chart draws numbers over time as lines. series are arrays of {time, value}, in ms; names of
// classes give them colours.
export class Chart {
  constructor(svg, span) {
    this.svg = svg;
    this.span = span; // ms
  }

  // render draws series up to a time. The scale includes least and most.
  render(series, now, least = 0, most = 1) {
    const { width, height } = sizeOf(this.svg);
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
}

// Bars draws one number after the other as bars. Each has a title.
export class Bars {
  constructor(svg) {
    this.svg = svg;
  }

  // render draws bars of {value, title}.
  render(bars) {
    const { width, height } = sizeOf(this.svg);
    const low = Math.min(0, ...bars.map((b) => b.value));
    const high = Math.max(1, ...bars.map((b) => b.value));
    const y = (value) => 6 + (1 - (value - low) / (high - low)) * (height - 12);
    const step = width / bars.length;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.replaceChildren(
      ...bars.map((b, i) => {
        const bar = draw("rect", { class: "bar", x: (i * step + 1).toFixed(1), width: (step - 2).toFixed(1), y: Math.min(y(b.value), y(0)).toFixed(1), height: Math.abs(y(b.value) - y(0)).toFixed(1) });
        bar.append(draw("title", {}, b.title));
        return bar;
      }),
      draw("line", { class: "axis", x1: 0, x2: width, y1: y(0), y2: y(0) }),
      draw("text", { class: "scale", x: 2, y: y(high) + 12 }, rounded.format(high)),
    );
  }
}

function sizeOf(svg) {
  const box = svg.getBoundingClientRect();
  return { width: Math.max(100, Math.round(box.width)), height: Math.max(60, Math.round(box.height)) };
}
