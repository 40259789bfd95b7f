// Draws a dashboard's JSON with the panels that Grafana itself is made of: TimeSeries,
// BigValue and PanelChrome of @grafana/ui. The queries go to Prometheus as Grafana's data
// source sends them. The address's fragment has prometheus, from and to, in Unix seconds.
import React, { useEffect, useState } from "react";
import { createRoot } from "react-dom/client";
import {
  applyFieldOverrides, createDataFrame, createTheme, dateTime, FieldType, getFieldDisplayValues, rangeUtil, renderLegendFormat, ThemeContext,
} from "@grafana/data";
import { BigValue, GlobalStyles, PanelChrome, TimeSeries } from "@grafana/ui";
import "@fontsource/inter/400.css";
import "@fontsource/inter/500.css";
import "uplot/dist/uPlot.min.css";
import dashboard from "./ratelimit.json";

const scrape = 5; // seconds, as in prometheus.yaml
const cell = 30, gap = 8, columns = 24;
const theme = createTheme({ colors: { mode: "light" } });
const params = new URLSearchParams(location.hash.slice(1));
const from = Number(params.get("from")) * 1000, to = Number(params.get("to")) * 1000;
const timeRange = { from: dateTime(from), to: dateTime(to), raw: { from: dateTime(from), to: dateTime(to) } };
const seconds = (ms) => Math.round(ms / 1000);

// The defaults that the dashboard's JSON leaves to Grafana.
const graph = {
  drawStyle: "line", lineInterpolation: "linear", lineWidth: 1, fillOpacity: 0, gradientMode: "none", showPoints: "auto", pointSize: 5,
  barAlignment: 0, axisPlacement: "auto", axisColorMode: "text", scaleDistribution: { type: "linear" }, spanNulls: false,
  stacking: { mode: "none", group: "A" }, hideFrom: { legend: false, tooltip: false, viz: false }, thresholdsStyle: { mode: "off" },
};
const steps = { mode: "absolute", steps: [{ color: "green", value: -Infinity }, { color: "red", value: 80 }] };

async function query(target, step) {
  const expr = target.expr.replaceAll("$__rate_interval", `${Math.max(step + scrape, 4 * scrape)}s`).replace(/\$(job|domain)/g, ".*");
  const start = Math.floor(seconds(from) / step) * step, end = Math.floor(seconds(to) / step) * step;
  const body = new URLSearchParams({ query: expr, start, end, step });
  const answer = await (await fetch(`${params.get("prometheus")}/api/v1/query_range`, { method: "POST", body })).json();
  if (answer.status !== "success") throw new Error(`${expr}: ${answer.error}`);
  const times = Array.from({ length: (end - start) / step + 1 }, (_, i) => start + i * step);
  return answer.data.result.map((series) => {
    const values = new Map(series.values); // without a value a line has a gap
    return createDataFrame({
      refId: target.refId,
      fields: [
        { name: "Time", type: FieldType.time, values: times.map((time) => time * 1000) },
        {
          name: "Value", type: FieldType.number, labels: series.metric, values: times.map((time) => (values.has(time) ? Number(values.get(time)) : null)),
          config: { displayNameFromDS: renderLegendFormat(target.legendFormat, series.metric) },
        },
      ],
    });
  });
}

async function load(panel, width) {
  const { intervalMs } = rangeUtil.calculateInterval(timeRange, width, `${scrape}s`);
  const frames = (await Promise.all(panel.targets.map((target) => query(target, seconds(intervalMs))))).flat();
  const { custom, thresholds, ...defaults } = panel.fieldConfig.defaults;
  const color = panel.type === "stat" ? { mode: "thresholds" } : { mode: "palette-classic" };
  for (const frame of frames) {
    const value = frame.fields[1];
    const name = value.config.displayNameFromDS;
    const own = panel.fieldConfig.overrides.find(({ matcher }) => matcher.options === name)?.properties[0].value;
    value.config = { color: own ?? color, thresholds: thresholds ?? steps, ...defaults, ...value.config, custom: { ...graph, ...custom } };
  }
  return applyFieldOverrides({ data: frames, fieldConfig: { defaults: {}, overrides: [] }, replaceVariables: (text) => text, theme, timeZone: "utc" });
}

function Stat({ panel, frames, width, height }) {
  const values = getFieldDisplayValues({
    fieldConfig: panel.fieldConfig, reduceOptions: panel.options.reduceOptions, replaceVariables: (text) => text, theme, data: frames, sparkline: true,
  });
  return values.map((value, i) => (
    <BigValue key={i} value={value.display} sparkline={value.sparkline} theme={theme} width={width / values.length} height={height}
      colorMode={panel.options.colorMode} graphMode={panel.options.graphMode} textMode={values.length > 1 ? "value_and_name" : "value"} />
  ));
}

function Panel({ panel, width, height }) {
  const [frames, setFrames] = useState();
  const [error, setError] = useState();
  useEffect(() => { load(panel, width).then(setFrames, setError); }, []);
  return (
    <PanelChrome title={panel.title} description={panel.description} width={width} height={height}>
      {(inner, high) => {
        if (error) return <b>{String(error)}</b>;
        if (!frames) return null;
        if (!frames.length) return <p style={{ textAlign: "center" }}>{panel.fieldConfig.defaults.noValue ?? "No data"}</p>;
        if (panel.type === "stat") return <div style={{ display: "flex" }}><Stat panel={panel} frames={frames} width={inner} height={high} /></div>;
        return <TimeSeries frames={frames} timeRange={timeRange} timeZone="utc" width={inner} height={high} legend={panel.options.legend} options={panel.options} replaceVariables={(text) => text} />;
      }}
    </PanelChrome>
  );
}

function Dashboard() {
  const width = window.innerWidth - 2 * gap;
  const place = ({ x, y, w, h }) => ({
    position: "absolute", left: gap + (x * (width + gap)) / columns, top: 56 + y * (cell + gap), width: (w * (width + gap)) / columns - gap, height: h * (cell + gap) - gap,
  });
  return (
    <ThemeContext.Provider value={theme}>
      <GlobalStyles />
      <div style={{ position: "absolute", left: 16, top: 14, fontSize: 20 }}>{dashboard.title}</div>
      <div style={{ position: "absolute", right: 16, top: 18 }}>{[timeRange.from, timeRange.to].map((time) => time.toISOString().slice(11, 16)).join(" to ")} UTC</div>
      {dashboard.panels.map((panel) => {
        const box = place(panel.gridPos);
        return panel.type === "row"
          ? <div key={panel.id} style={{ ...box, padding: 6, fontSize: 16, fontWeight: 500 }}>⌄ {panel.title}</div>
          : <div key={panel.id} style={box}><Panel panel={panel} width={box.width} height={box.height} /></div>;
      })}
    </ThemeContext.Provider>
  );
}

createRoot(document.getElementById("root")).render(<Dashboard />);
