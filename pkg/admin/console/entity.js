import { openAdjust, openSwitch } from "./adjust.js";
import { ask, askTop, every, inNamespace } from "./api.js";
import { auditPage, auditText } from "./audit.js";
import { watchBalances } from "./balances.js";
import { byID, entityLink, make, mark, nameText, number, pageOf, replace, show } from "./dom.js";
import { ago, stamp } from "./times.js";
import { watchUsage } from "./usage.js";

// openEntity shows one entity, which need not be stored. parameters have its id.
export function openEntity(parameters, status) {
  const id = parameters.get("id") || "";
  byID("entity-title").replaceChildren(make("bdi", {}, nameText(id)));
  for (const each of ["entity-marks", "entity-verbs", "chain", "children", "facts", "balance-rows", "denied", "history-rows"]) byID(each).replaceChildren();
  byID("changed-here").textContent = "";
  show(byID("entity"));
  let open = true;
  const on = () => open;
  const reread = () => { readFamily(id, on, done); readHistory(id, status.can, on); };
  let balances;
  const done = (text) => { byID("changed-here").textContent = text; reread(); balances?.soon(); };
  reread();
  byID("entity-title").focus();
  if (status.can.buckets) balances = watchBalances(id, on, (verb, bucket, limit, balance) => openAdjust(verb, bucket, limit, balance, done));
  const stops = [
    every(2000, on, () => readDenied(id, on)),
    ...(balances ? [balances] : []),
    ...(status.can.usage ? [watchUsage(id, on)] : []),
  ];
  for (const [part, can] of [["usage", status.can.usage], ["history", status.can.audit], ["balances", status.can.buckets]]) byID(part).hidden = !can;
  byID("history-all").href = auditPage(id);
  return () => { open = false; stops.forEach((stop) => stop()); };
}

// readFamily shows the parents, the children, and the facts of the entity.
async function readFamily(id, on, done) {
  const part = byID("family");
  try {
    const family = await ask(inNamespace("entities", id, "family"));
    if (!on()) return;
    const [self] = family.chain;
    byID("entity-marks").replaceChildren(...marksOf(self));
    byID("entity-verbs").replaceChildren(...verbsOf(id, self, done));
    byID("chain").replaceChildren(...family.chain.map((m, level) => make("li", { class: "level" + Math.min(level, 7) }, level === 0 ? make("b", {}, make("bdi", {}, nameText(m.id))) : entityLink(m.id),
      m.name ? ` ${m.name}` : "", m.plan ? mark("plan " + m.plan) : "", m.disabled ? mark("disabled", "bad") : "",
      level + 1 < family.chain.length ? make("span", { class: "quiet" }, m.cascade ? " uses its parent's limits too" : " does not use its parent's limits") : "")));
    const more = family.more_children ? " and more" : "";
    byID("children").replaceChildren(...(family.children.length === 0 ? [] : [make("h3", {}, `Children (${family.children.length}${more})`),
      make("ul", { class: "plain names" }, ...family.children.map((child) => make("li", {}, entityLink(child))))]));
    byID("facts").replaceChildren(...Object.entries(self.metadata || {}).flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, make("bdi", {}, value))]));
    show(part);
  } catch (error) {
    show(part, error);
  }
}

function marksOf(self) {
  return [
    self.name ? make("span", {}, self.name) : "", self.stored ? mark("stored") : "", self.file ? mark("file", "", "in the configuration file") : "",
    !self.stored && !self.file ? mark("not stored", "", "it is one of the rules alone") : "",
    self.disabled ? mark("disabled", "bad") : "",
  ].filter(Boolean);
}

function verbsOf(id, self, done) {
  const verb = self.disabled ? "enable" : "disable";
  return [
    make("a", { class: "button administer", href: pageOf("limits", { level: "entity", entity: id, resource: "_default_" }) }, "Change limits"),
    make("button", { type: "button", class: "administer" + (self.disabled ? "" : " danger"), "data-verb": verb, click: () => openSwitch(verb, id, done) }, self.disabled ? "Enable" : "Disable"),
  ];
}

// readDenied shows which limits denied the entity in the last minute.
async function readDenied(id, on) {
  const part = byID("denials");
  try {
    const items = await askTop({ by: "denied", entity: id, size: 20 });
    if (!on()) return;
    replace(byID("denied"), items.map((row) => make("li", {}, make("strong", {}, number.format(row.decisions)), ` by ${row.limit} for `, make("bdi", {}, nameText(row.resource)))), "never");
    show(part);
  } catch (error) {
    show(part, error);
  }
}

// readHistory shows the last changes of the entity, its limits and its balances.
async function readHistory(id, can, on) {
  const part = byID("history");
  if (!can.audit) return;
  try {
    const { items } = await ask(inNamespace("audit") + "?" + new URLSearchParams({ entity: id, size: 8 }));
    if (!on()) return;
    replace(byID("history-rows"), items.map((e) => make("li", { class: "calm" }, make("time", { datetime: e.time, title: stamp(e.time) + " UTC" }, ago(e.time)),
      make("span", {}, make("bdi", {}, auditText(e).text.trim())))), "none");
    show(part);
  } catch (error) {
    show(part, error);
  }
}
