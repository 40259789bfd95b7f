// Requests to /v1 of the service that served this page.

const stored = "ratelimit-token";
const patience = 10_000; // ms
const rest = 40; // the pause after an answer, as a multiple of its time
let left = () => {};

export const token = () => sessionStorage.getItem(stored) || "";
export const setToken = (text) => (text ? sessionStorage.setItem(stored, text) : sessionStorage.removeItem(stored));

// The command ratelimit console opens this page with a one-time text in the address. A page of that command has a
// session, which is a cookie that scripts cannot read.
const once = "#login=";

// enterSession begins the session of a one-time text in the address, and takes that out of the history.
export async function enterSession() {
  if (!location.hash.startsWith(once)) return;
  const text = location.hash.slice(once.length);
  history.replaceState(null, "", location.pathname);
  await ask("/console/login", { method: "POST", body: { token: text } });
}

// endSession forgets what a login left behind.
export function endSession() {
  if (location.hash.startsWith(once)) history.replaceState(null, "", location.pathname);
}

// onLeft sets the function to call when the service refuses the token.
export const onLeft = (fn) => { left = fn; };

// Problem is an error of the service. challenge says which credential a 401 asks for, "" = none.
export class Problem extends Error {
  constructor(status, detail, challenge = "") {
    super(detail);
    this.status = status;
    this.challenge = challenge;
  }
}

const loggedOutText = "The login at the proxy before this service has ended: load this page again";

// ask makes a request, and returns the JSON of its answer. options are method, body and
// headers. It fails with a Problem.
export async function ask(path, options = {}) {
  const headers = { ...options.headers };
  if (token()) headers.Authorization = "Bearer " + token();
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, {
      method: options.method || "GET", headers, cache: "no-store", credentials: "same-origin", redirect: "manual",
      body: options.body === undefined ? undefined : JSON.stringify(options.body), signal: AbortSignal.timeout(patience),
    });
  } catch (error) {
    throw new Problem(0, "The service does not answer: " + (error.name === "TimeoutError" ? "no answer in 10 s" : error.message));
  }
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  // The service redirects nothing, and says why it refuses: any other answer is of a proxy.
  const loggedOut = response.type === "opaqueredirect" || ([401, 403].includes(response.status) && !answer.detail);
  const detail = loggedOut ? loggedOutText : answer.detail || answer.error || response.statusText;
  if (loggedOut || response.status === 401) left(detail);
  throw new Problem(response.status, detail, response.headers.get("WWW-Authenticate") || "");
}

// endText says that a change ends with the process, if the store of the service is in memory.
export const endText = (done) => (done.in_memory ? " It ends with the process: the store is in memory." : "");

const namespace = () => document.getElementById("namespace").value || "default";

// askTop returns the rows with the most decisions of the fleet in the namespace of the page. of has by and size, and may
// have an entity or a resource.
export async function askTop(of) {
  const { items } = await ask("/v1/top?" + new URLSearchParams({ fleet: true, namespace: namespace(), ...of }));
  return items;
}

// inNamespace returns a path below the namespace of the page. Browsers take the parts "." and ".." out of any path, which
// is that of another record then.
export function inNamespace(...parts) {
  const all = [namespace(), ...parts];
  const dots = all.find((part) => part === "." || part === "..");
  if (dots) throw new Problem(0, `No address of a browser can have the name “${dots}”: use the command ratelimit`);
  return "/v1/namespaces/" + all.map(encodeURIComponent).join("/");
}

// every calls fn now and at intervals of ms, while the page is visible and on() is true. Calls
// never overlap. After a slow answer it waits longer, as such an answer costs the service much.
// It returns a function that ends it, and whose soon() has fn called at once: the user has changed what it shows.
export function every(ms, on, fn) {
  let timer;
  let ended = false;
  let busy = false;
  let again = false;
  const turn = async () => {
    const began = performance.now();
    [busy, again] = [true, false];
    if (!document.hidden && on()) await fn();
    busy = false;
    if (!ended) timer = setTimeout(turn, again ? 0 : Math.max(ms, rest * (performance.now() - began)));
  };
  turn();
  const stop = () => { ended = true; clearTimeout(timer); };
  stop.soon = () => {
    again = true; // after the call that is under way
    if (busy || ended) return;
    clearTimeout(timer);
    turn();
  };
  return stop;
}
