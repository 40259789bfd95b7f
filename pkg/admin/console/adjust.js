import { amount } from "./amounts.js";
import { ask, endText, inNamespace } from "./api.js";
import { byID, nameText, show } from "./dom.js";
import { limitText } from "./limittext.js";

// Changes of balances and switches. A dialog describes the change, and only its button makes it.
const verbs = {
  reset: { button: "Reset", about: "The bucket becomes full, as if it had never been used." },
  set: { button: "Set", about: "The bucket gets this balance, at most its capacity. Below zero is debt.", least: "", amount: "Balance, in tokens" },
  "top-up": { button: "Top up", about: "The bucket gets these tokens.", least: "0", amount: "Tokens to add" },
};

const ordinary = "0000000000000000"; // the ordinary bucket, among several
let make = async () => ""; // makes the change of the dialog, and returns what was done
let after = () => {}; // is called with that

// startAdjust sets the handlers of the dialog.
export function startAdjust() {
  byID("adjust-cancel").onclick = () => byID("adjust").close();
  byID("adjust-form").onsubmit = async (event) => {
    event.preventDefault();
    byID("adjust-do").disabled = true;
    try {
      const text = await make();
      byID("adjust").close();
      after(text);
    } catch (error) {
      show(byID("adjust"), error);
    } finally {
      byID("adjust-do").disabled = false;
    }
  };
}

// openAdjust asks for the amount and the confirmation of a verb on a limit of a bucket. limit.held is its name in the
// bucket, where that is another one: rpm of rpm.shadow.
export function openAdjust(verb, bucket, limit, balance, done) {
  const { button, about, least, amount: asked } = verbs[verb];
  const body = { entity: bucket.entity, resource: bucket.resource, variant: bucket.variant || ordinary, limit: limit.held || limit.name, once: once() };
  openDialog(`${button} ${limit.name} of ${nameText(bucket.entity)} for ${nameText(bucket.resource)}?`,
    `It has ${balance} of ${limitText(limit.name, limit.limit)}. ${about} The change is in the audit.`, button, asked, least, done);
  byID("adjust-excess-label").hidden = verb !== "top-up";
  make = async () => {
    if (asked) body.tokens = byID("adjust-amount").valueAsNumber;
    if (verb === "top-up" && byID("adjust-excess").value) body.excess = byID("adjust-excess").value;
    const changed = await ask(inNamespace("buckets", verb) + query(), { method: "POST", body });
    const left = changed.after?.limits.find((l) => l.name === body.limit);
    return `${nameText(body.resource)} ${limit.name} ${changed.result}: ${amount(body.limit, left?.available ?? 0)}, in force on every replica within 5 s.${cutText(verb, changed)}${endText(changed)}`;
  };
}

// openSwitch asks for the confirmation to disable or to enable an entity.
export function openSwitch(verb, id, done) {
  const about = verb === "disable" ? "Every request that would take from it is denied, on every replica within 5 s, until it is enabled." : "Its requests are decided by its limits again.";
  openDialog(`${verb === "disable" ? "Disable" : "Enable"} ${nameText(id)}?`, about + " The change is in the audit.", verb === "disable" ? "Disable" : "Enable", undefined, undefined, done);
  make = async () => {
    const changed = await ask(inNamespace("disabled", "entities", id) + query(), { method: verb === "disable" ? "PUT" : "DELETE" });
    return `${nameText(id)} is ${verb}d.${endText(changed)}`;
  };
}

// query has the reason of the dialog.
function query() {
  const reason = byID("adjust-reason").value.trim();
  return reason ? "?" + new URLSearchParams({ reason }) : "";
}

function openDialog(title, about, button, asked, least, done) {
  after = done;
  byID("adjust-excess-label").hidden = true;
  byID("adjust-excess").value = "";
  byID("adjust-title").textContent = title;
  byID("adjust-about").textContent = about;
  byID("adjust-amount-label").hidden = asked === undefined;
  byID("adjust-amount-text").textContent = asked || "";
  byID("adjust-amount").required = asked !== undefined;
  byID("adjust-amount").min = least || "";
  byID("adjust-amount").value = byID("adjust-reason").value = "";
  byID("adjust-do").textContent = button;
  show(byID("adjust"));
  byID("adjust").showModal();
  byID(asked === undefined ? "adjust-cancel" : "adjust-amount").focus();
}

// once returns a text that no other change has. So a change that is sent again is made once.
function once() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return "console " + [...bytes].map((b) => b.toString(16).padStart(2, "0")).join("");
}

// cutText describes the part of an amount that was not booked.
function cutText(verb, done) {
  const cut = (done.booked || done.first?.booked || []).find((b) => b.cut);
  if (verb !== "top-up" || !cut) return "";
  return ` Booked ${amount(cut.limit, cut.tokens)}; ${amount(cut.limit, cut.cut)} were cut at the capacity.`;
}
