import { ask, inNamespace } from "./api.js";
import { byID, entityLink, make, nameText, pageOf, replace, show } from "./dom.js";
import { stamp } from "./times.js";

const actions = ["entity.put", "entity.delete", "entity.disable", "entity.enable", "limits.put", "limits.delete", "resource.disable", "resource.enable",
  "bucket.reset", "bucket.set", "bucket.top-up", "bucket.take-out", "namespace.create", "namespace.delete", "namespace.recover", "namespace.purge",
  "namespace.purged", "namespace.disable", "namespace.enable", "store.restore"];

// detailOf returns the detail of an event, without the text by which a change of the console is made once.
const detailOf = (e) => (e.detail || "").replace(/; once "console [0-9a-f]+"$/, "");

// auditText returns the parts of an event for a line of text.
export function auditText(e) {
  const who = e.principal ? ` by ${e.principal}` : "";
  return { link: subjectOf(e), text: ` ${e.action}: ${detailOf(e) || "no detail"}${who}${e.reason ? `, “${e.reason}”` : ""}` };
}

// subjectOf returns an element with the subject of an event.
export function subjectOf(e) {
  switch (e.level) {
    case "system": return make("span", {}, "the system");
    case "namespace": return make("span", {}, "the namespace");
    case "resource": return make("bdi", {}, "resource " + nameText(e.resource));
  }
  const resource = e.resource === undefined ? "" : " for " + nameText(e.resource);
  return make("span", {}, entityLink(e.entity), resource && make("bdi", {}, resource));
}

// openAudit shows all changes, the newest first. parameters may have a subject.
export function openAudit(parameters) {
  const part = byID("audit-list");
  byID("audit-subject").value = parameters.get("subject") || "";
  if (byID("audit-action").options.length === 1) byID("audit-action").append(...actions.map((name) => make("option", {}, name)));
  let next = "";
  let rows = [];
  const read = async (more) => {
    const asked = query(more ? next : "");
    try {
      const list = await ask(inNamespace("audit") + "?" + asked);
      rows = [...(more ? rows : []), ...list.items.map(rowOf)];
      next = list.next || "";
      replace(byID("audit-rows"), rows, next ? "none in the last changes: More looks further back" : "no change fits");
      show(part);
    } catch (error) {
      replace(byID("audit-rows"), [], "");
      next = "";
      show(part, error);
    }
    byID("audit-more").hidden = !next;
  };
  byID("audit-filter").onsubmit = (event) => { event.preventDefault(); read(false); };
  byID("audit-more").onclick = () => read(true);
  read(false);
  return () => { byID("audit-rows").replaceChildren(); };
}

function query(after) {
  const of = new URLSearchParams({ size: 50, ...(after && { after }) });
  const subject = byID("audit-subject").value.trim();
  if (subject === "$SYSTEM") of.set("system", "true");
  else if (subject.startsWith("$RESOURCE:")) of.set("resource", subject.slice("$RESOURCE:".length));
  else if (subject) of.set("entity", subject);
  for (const name of ["principal", "action", "from", "to"]) {
    const value = byID("audit-" + name).value.trim();
    if (value) of.set(name, name === "from" || name === "to" ? value + "T00:00:00Z" : value);
  }
  return of;
}

function rowOf(e) {
  return make("tr", {}, make("td", { class: "time" }, stamp(e.time)), make("td", {}, make("bdi", {}, e.principal || "–")), make("td", {}, e.action),
    make("td", {}, subjectOf(e)), make("td", {}, changeOf(e)), make("td", {}, make("bdi", {}, e.reason || "")));
}

// changeOf returns the detail of an event, with the record before and after it to unfold.
function changeOf(e) {
  const text = make("bdi", {}, detailOf(e) || "–");
  if (!e.before && !e.after) return text;
  const json = (record) => (record ? JSON.stringify(record, null, 1) : "none");
  return make("details", {}, make("summary", {}, text), make("div", { class: "sides" },
    make("div", {}, make("b", {}, "before"), make("pre", { tabindex: 0 }, json(e.before))), make("div", {}, make("b", {}, "after"), make("pre", { tabindex: 0 }, json(e.after)))));
}

// auditPage returns the address of the audit of a subject.
export const auditPage = (subject) => pageOf("audit", { subject });
