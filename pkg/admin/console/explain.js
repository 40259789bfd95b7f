import { amounts } from "./amounts.js";
import { ask } from "./api.js";
import { byID, make, show } from "./dom.js";

// startExplain sets the handlers of the form for descriptors.
export function startExplain() {
  const part = byID("explain");
  byID("question").onsubmit = async (event) => {
    event.preventDefault();
    show(part);
    byID("explanation").replaceChildren();
    try {
      const x = await ask("/v1/explain", { method: "POST", body: { domain: byID("domain").value, entries: entries(byID("entries").value), hits: Number(byID("hits").value) } });
      byID("explanation").replaceChildren(...render(x));
    } catch (error) {
      show(part, error);
    }
  };
}

// entries reads one KEY=VALUE a line.
function entries(text) {
  return text.split("\n").map((line) => line.trim()).filter(Boolean).map((line) => {
    const at = line.indexOf("=");
    if (at < 1) throw new Error(`“${line}” is no entry: write KEY=VALUE`);
    return { key: line.slice(0, at), value: line.slice(at + 1) };
  });
}

function render(x) {
  const facts = [
    ["outcome", `${x.outcome}: ${x.admitted ? "it would be admitted" : "it would be denied"}` + (x.retry_after ? `, and pass in ${x.retry_after}` : "")],
    ["why", x.why], ["rule", x.rule], ["nearest rule", x.nearest && `${x.nearest.rule || "without a name"}: ${x.nearest.why}`],
    ["did you mean", x.did_you_mean], ["domains", x.domains?.join(", ")], ["without the store", x.on_unavailable],
  ].filter(([, value]) => value);
  const list = make("dl", {}, ...facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
  if (!x.limits?.length) return [list];
  const head = make("tr", {}, ...["Entity", "Resource", "Limit", "Rate", "From", "Action", "Available"].map((text) => make("th", {}, text)));
  const rows = x.limits.map((l) => make("tr", {}, ...[l.entity, l.resource, l.limit, amounts(l.limit, l.rate), l.source, `${l.action} ${amounts(l.limit, l.amount)}`, amounts(l.limit, l.available) + (l.enough ? "" : ": not enough")]
    .map((text) => make("td", {}, text))));
  return [list, make("div", { class: "wide" }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)))];
}
