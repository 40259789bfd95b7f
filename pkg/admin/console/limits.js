import { ask, endText, inNamespace } from "./api.js";
import { byID, show } from "./dom.js";
import { linesOf, parseLines } from "./limittext.js";

let open; // the limits that are edited: path, and etag, "" if there are none

// startLimits sets the handlers of the form for limits. may says whether the principal may change them;
// saved is called after a change.
export function startLimits(may, saved) {
  const part = byID("change");
  const run = async (fn) => {
    show(part);
    byID("changed").textContent = byID("decides").textContent = "";
    try {
      await fn();
    } catch (error) {
      show(part, error.status === 412 ? new Error(error.message + " Read the limits again.") : error);
    }
  };
  byID("level").onchange = fields;
  byID("which").onsubmit = (event) => { event.preventDefault(); run(read); };
  byID("edit").onsubmit = (event) => { event.preventDefault(); run(() => put(false).then(saved)); };
  byID("check").onclick = () => run(() => put(true));
  for (const id of ["check", "save"]) {
    byID(id).disabled = !may;
    byID(id).title = may ? "" : "This needs the role administer.";
  }
  fields();
  byID("edit").hidden = true;
}

// chooseLimits opens the limits of a level.
export function chooseLimits(level, entity, resource) {
  byID("level").value = level;
  byID("limit-entity").value = entity;
  byID("limit-resource").value = resource;
  fields();
  byID("which").requestSubmit();
  byID("change").scrollIntoView();
}

// fields shows the fields that a level has.
function fields() {
  const level = byID("level").value;
  byID("limit-entity-label").hidden = level !== "entity";
  byID("limit-resource-label").hidden = level === "system";
  byID("limit-entity").required = level === "entity";
  byID("limit-resource").required = level !== "system";
}

function path() {
  const [entity, resource] = [byID("limit-entity").value, byID("limit-resource").value];
  switch (byID("level").value) {
    case "system": return inNamespace("limits", "system");
    case "resource": return inNamespace("limits", "resources", resource);
    default: return inNamespace("limits", "entities", entity, resource);
  }
}

async function read() {
  byID("edit").hidden = true;
  const at = path();
  const stored = await ask(at).catch((error) => {
    if (error.status !== 404) throw error;
    byID("changed").textContent = error.message;
    return undefined;
  });
  open = { path: at, etag: stored?.etag || "", policy: stored?.on_unavailable, alone: stored?.inherit === false };
  byID("limits").value = stored ? linesOf(stored.limits) : "";
  byID("edit").hidden = false;
  byID("limits").focus();
}

// put stores the limits, unless they were changed since they were read.
async function put(dryRun) {
  const headers = open.etag ? { "If-Match": open.etag } : { "If-None-Match": "*" };
  const body = { limits: parseLines(byID("limits").value), ...(open.policy && { on_unavailable: open.policy }), ...(open.alone && { inherit: false }) };
  const query = new URLSearchParams({ ...(dryRun && { dryRun }), ...(byID("allow-new").checked && { allowNew: true }) });
  const done = await ask(`${open.path}?${query}`, { method: "PUT", headers, body });
  if (!dryRun) open.etag = done.after?.etag || "";
  byID("decides").textContent = decides(done.effective);
  byID("changed").textContent = dryRun ? `They are valid: ${done.result} when you save them.` : `${done.result}: in force on every replica within 5 s.${endText(done)}`;
}

// decides writes the limits that decide before and after a change, a line each, with their levels.
function decides(effective) {
  if (!effective) return "";
  const text = (all) => new Map(all.map((l) => [l.name, `${linesOf({ [l.name]: l.limit })}, ${l.source}`]));
  const [before, after] = [text(effective.before), text(effective.after)];
  return [...new Set([...before.keys(), ...after.keys()])].sort()
    .map((name) => (before.get(name) === after.get(name) ? after.get(name) : `${before.get(name) || "none"} → ${after.get(name) || "none"}`)).join("\n");
}
