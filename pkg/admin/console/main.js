import { startAdjust } from "./adjust.js";
import { ask, endSession, enterSession, onLeft, setToken, token } from "./api.js";
import { openAudit } from "./audit.js";
import { byID, make, pageOf, show } from "./dom.js";
import { openEntities } from "./entities.js";
import { openEntity } from "./entity.js";
import { openExplain } from "./explain.js";
import { openLimits } from "./limits.js";
import { openNow } from "./now.js";

// Each page is a section, and a function that shows it and returns a function to end it.
const pages = { now: openNow, entities: openEntities, entity: openEntity, limits: openLimits, explain: openExplain, audit: openAudit };

let status; // of the service and this tab's principal, while it is logged in
let close = () => {}; // ends the page at hand

// turn shows the page of the address.
function turn() {
  if (!status) return;
  const [name, query = ""] = location.hash.slice(1).split("?");
  if (name === "main") return; // the link to skip to the page
  const page = Object.hasOwn(pages, name) ? name : "now";
  close();
  if (byID("adjust").open) byID("adjust").close();
  const parameters = new URLSearchParams(query);
  for (const each of Object.keys(pages)) byID(each).hidden = each !== page;
  for (const link of byID("pages").querySelectorAll("a")) {
    const here = link.hash === "#" + (page === "entity" ? "entities" : page);
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  close = page === "now" ? openNow(status.can) : pages[page](parameters, status);
  document.title = `${byID(page).querySelector("h1").textContent} – ratelimit`;
}

// enter reads the principal of this tab, and opens a page or asks for a token.
async function enter() {
  const byLink = location.hash.startsWith("#login=");
  try {
    await enterSession();
    status = await ask("/v1/status");
  } catch (error) {
    const asked = error.status === 401 && error.challenge.startsWith("Bearer"); // for a token
    leave(asked && !token() && !byLink ? "" : error);
    return;
  }
  byID("service").textContent = `${status.version}, store ${status.store}. You are ${status.principal}, role ${status.role}.`;
  const roles = ["read", "operate", "administer"];
  document.body.dataset.role = roles.includes(status.role) ? status.role : "read";
  byID("login").hidden = true;
  for (const id of ["pages", "search"]) byID(id).hidden = false;
  byID("leave").hidden = !token();
  startAdjust();
  namespaces();
  turn();
}

// leave stops all updates and asks for a token. error is the reason, "" = none.
function leave(error) {
  close();
  close = () => {};
  status = undefined;
  setToken("");
  endSession();
  for (const id of [...Object.keys(pages), "pages", "search", "leave"]) byID(id).hidden = true;
  if (byID("adjust").open) byID("adjust").close();
  byID("service").textContent = "";
  byID("login").hidden = false;
  show(byID("login"), error);
  byID("token").focus();
}

// namespaces offers the names of the first namespaces.
async function namespaces() {
  const list = await ask("/v1/namespaces?size=100").catch(() => ({ items: [] }));
  byID("namespaces").replaceChildren(...list.items.map((n) => make("option", { value: n.name })));
}

onLeft((why) => { if (status) leave(why); });
byID("leave").onclick = () => leave("");
byID("login").onsubmit = (event) => {
  event.preventDefault();
  setToken(byID("token").value.trim());
  byID("token").value = "";
  enter();
};
byID("search").onsubmit = (event) => {
  event.preventDefault();
  const to = pageOf("entities", { text: byID("query").value.trim() });
  if (location.hash === to) turn();
  else location.hash = to;
};
byID("namespace").onchange = turn;
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || byID("search").hidden) return;
  if (document.activeElement.matches("input, textarea, select") || byID("adjust").open) return;
  event.preventDefault();
  byID("query").focus();
});
addEventListener("hashchange", turn);
enter();
