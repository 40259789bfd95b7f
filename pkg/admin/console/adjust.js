import { amount } from "./amounts.js";
import { ask, endText, inNamespace } from "./api.js";
import { byID, nameText, show } from "./dom.js";
import { limitText } from "./limittext.js";

// Changes of balances. A dialog describes the change, and only its button makes it.
const verbs = {
  reset: { button: "Reset", about: "The bucket becomes full, as if it had never been used." },
  set: { button: "Set", about: "The bucket gets this balance, at most its capacity. Below zero is debt.", least: "", amount: "Balance, in tokens" },
  "top-up": { button: "Top up", about: "The bucket gets these tokens, up to its capacity.", least: "0", amount: "Tokens to add" },
};

const ordinary = "0000000000000000"; // the ordinary bucket, among several
let open; // the change of the dialog: verb, body

// startAdjust sets the handlers of the dialog. may says whether the principal may change balances.
export function startAdjust(may) {
  byID("main").classList.toggle("watches", !may);
  byID("adjust-cancel").onclick = closeAdjust;
  byID("adjust-form").onsubmit = async (event) => {
    event.preventDefault();
    await adjust();
  };
}

// closeAdjust closes the dialog, and changes nothing.
export function closeAdjust() {
  open = undefined;
  if (byID("adjust").open) byID("adjust").close();
}

// openAdjust asks for the amount and the confirmation of a verb on a limit of a bucket.
export function openAdjust(verb, bucket, limit, balance) {
  const { button, about, least, amount: asked } = verbs[verb];
  open = { verb, body: { entity: bucket.entity, resource: bucket.resource, variant: bucket.variant || ordinary, limit: limit.name, once: once() } };
  byID("adjust-title").textContent = `${button} ${limit.name} of ${nameText(bucket.entity)} for ${nameText(bucket.resource)}?`;
  byID("adjust-about").textContent = `It has ${balance} of ${limitText(limit.name, limit.limit)}. ${about} The change is in the audit.`;
  byID("adjust-amount-label").hidden = asked === undefined;
  byID("adjust-amount-text").textContent = asked || "";
  byID("adjust-amount").required = asked !== undefined;
  byID("adjust-amount").min = least || "";
  byID("adjust-amount").value = "";
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

// adjust makes the change of the dialog.
async function adjust() {
  const { verb, body } = open;
  if (byID("adjust-amount").required) body.tokens = byID("adjust-amount").valueAsNumber;
  byID("adjust-do").disabled = true;
  try {
    const done = await ask(inNamespace("buckets", verb), { method: "POST", body });
    const limit = done.after?.limits.find((l) => l.name === body.limit);
    byID("adjusted").textContent = `${nameText(body.resource)} ${body.limit} ${done.result}: ${amount(body.limit, limit?.available ?? 0)}, in force on every replica within 5 s.${cutText(verb, done)}${endText(done)}`;
    closeAdjust();
  } catch (error) {
    show(byID("adjust"), error);
  } finally {
    byID("adjust-do").disabled = false;
  }
}

// cutText describes the part of an amount that was not booked.
function cutText(verb, done) {
  const cut = (done.booked || done.first?.booked || []).find((b) => b.cut);
  if (verb !== "top-up" || !cut) return "";
  return ` Booked ${amount(cut.limit, cut.tokens)}; ${amount(cut.limit, cut.cut)} were cut at the capacity.`;
}
