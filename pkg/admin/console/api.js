// Requests to /v1 of the service that served this page.

const stored = "ratelimit-token";
const patience = 10_000; // ms
const rest = 40; // the pause after an answer, as a multiple of its time
let left = () => {};

export const token = () => sessionStorage.getItem(stored) || "";
export const setToken = (text) => (text ? sessionStorage.setItem(stored, text) : sessionStorage.removeItem(stored));

// onLeft sets the function to call when the service refuses the token.
export const onLeft = (fn) => { left = fn; };

// Problem is an error of the service.
export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

// ask makes a request, and returns the JSON of its answer. options are method, body and
// headers. It fails with a Problem.
export async function ask(path, options = {}) {
  const headers = { ...options.headers };
  if (token()) headers.Authorization = "Bearer " + token();
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, {
      method: options.method || "GET", headers, cache: "no-store", credentials: "same-origin", redirect: "error",
      body: options.body === undefined ? undefined : JSON.stringify(options.body), signal: AbortSignal.timeout(patience),
    });
  } catch (error) {
    throw new Problem(0, "The service does not answer: " + (error.name === "TimeoutError" ? "no answer in 10 s" : error.message));
  }
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  const detail = answer.detail || answer.error || response.statusText;
  if (response.status === 401) left(detail);
  throw new Problem(response.status, detail);
}

// endText says that a change ends with the process, if the store of the service is in memory.
export const endText = (done) => (done.in_memory ? " It ends with the process: the store is in memory." : "");

// inNamespace returns a path below the namespace of the page.
export function inNamespace(...parts) {
  const namespace = document.getElementById("namespace").value || "default";
  return "/v1/namespaces/" + [namespace, ...parts].map(encodeURIComponent).join("/");
}

// every calls fn now and at intervals of ms, while the page is visible and on() is true. Calls
// never overlap. After a slow answer it waits longer, as such an answer costs the service much.
// It returns a function that ends it.
export function every(ms, on, fn) {
  let timer;
  let ended = false;
  const turn = async () => {
    const began = performance.now();
    if (!document.hidden && on()) await fn();
    if (!ended) timer = setTimeout(turn, Math.max(ms, rest * (performance.now() - began)));
  };
  turn();
  return () => { ended = true; clearTimeout(timer); };
}
