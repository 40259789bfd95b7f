import { closeAdjust, startAdjust } from "./adjust.js";
import { ask, onLeft, setToken, token } from "./api.js";
import { byID, show } from "./dom.js";
import { closeEntity, openEntity, rereadEntity, search } from "./entities.js";
import { startExplain } from "./explain.js";
import { chooseLimits, startLimits } from "./limits.js";
import { watchDecisions } from "./live.js";
import { watchTop } from "./top.js";

let stops = []; // functions to call at the end of a login

// enter reads the principal of this tab, and opens the page or asks for a token.
async function enter() {
  let status;
  try {
    status = await ask("/v1/status");
  } catch (error) {
    leave(error.status === 401 && !token() ? "" : error);
    return;
  }
  byID("service").textContent = `${status.version}, ${status.store}; ${status.principal}, role ${status.role}`;
  byID("login").hidden = true;
  byID("main").hidden = false;
  byID("leave").hidden = !token();
  startLimits(status.role === "administer", rereadEntity);
  startAdjust(status.role === "operate" || status.role === "administer");
  startExplain();
  stops = [watchDecisions(), watchTop((id) => { openEntity(id, chooseLimits); byID("entities").scrollIntoView(); })];
}

// leave stops all updates and asks for a token. error is the reason, "" = none.
function leave(error) {
  stops.forEach((stop) => stop());
  stops = [];
  setToken("");
  byID("main").hidden = true;
  closeAdjust();
  closeEntity();
  byID("leave").hidden = true;
  byID("service").textContent = "";
  byID("login").hidden = false;
  show(byID("login"), error);
  byID("token").focus();
}

onLeft((why) => { if (!byID("main").hidden) leave(why); });
byID("leave").onclick = () => leave("");
byID("login").onsubmit = (event) => {
  event.preventDefault();
  setToken(byID("token").value.trim());
  byID("token").value = "";
  enter();
};
byID("namespace").onchange = closeEntity;
byID("search").onsubmit = (event) => {
  event.preventDefault();
  search(byID("query").value, chooseLimits);
};
enter();
