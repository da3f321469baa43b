// A client of `scrimp serve` in one file, for Node 18 or later, Deno, Bun and browsers.
//
//   import { Scrimp } from "./scrimp.mjs";
//   const scrimp = new Scrimp("http://127.0.0.1:8400", process.env.SCRIMP_TOKEN);
//   await scrimp.create("digits", { space: { lr: { type: "float", low: 1e-5, high: 0.1, log: true } }, n_trials: 20 });
//   await scrimp.run("digits", async ({ params }) => train(params));
//
// Every change carries a key, so a request whose answer was lost is sent again and counts once.

export class ScrimpError extends Error {
  constructor(status, kind, message) {
    super(message);
    Object.assign(this, { name: "ScrimpError", status, kind });
  }
}

const RETRIED = new Set([429, 502, 503, 504]);
const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * seconds));

export class Scrimp {
  // timeout: seconds for which a server that does not answer is tried again.
  constructor(url, token, { timeout = 60 } = {}) {
    this.url = url.replace(/\/+$/, "");
    this.token = token;
    this.timeout = timeout;
  }

  studies() { return this.#get("studies", {}).then((answer) => answer.names); }
  read(study, { start = 0, count = 100 } = {}) { return this.#facts("study", { study, start, count }); }
  front(study) { return this.#facts("front", { study }); }
  explain(study, trial) { return this.#facts("explain", trial === undefined ? { study } : { study, trial }); }
  async predict(study, configs, at) { return (await this.#post("predict", { study, configs, at })).facts; }

  create(study, options) { return this.#post("create", { study, ...options }); }
  advise(study, configs, by, why = "") { return this.#post("advise", { study, configs, by, why }); }
  enqueue(study, params) { return this.#post("enqueue", { study, params }); }
  delete(study) { return this.#post("delete", { study }); }

  // -> { trials: [{ id, params, attempt, done, budget }], state: "run" | "wait" | "finished", reason }
  ask(study, { count = 1, lease } = {}) { return this.#post("ask", { study, count, lease }); }
  // -> { continue: true | false, status }
  report(study, trial, step, metrics) {
    return this.#post("report", { study, trial: trial.id, attempt: trial.attempt, step, metrics: finite(metrics) });
  }
  // result: a number, metrics by name, or { state: "failed", message }
  tell(study, trial, result) {
    const about = { study, trial: trial.id, attempt: trial.attempt };
    if (typeof result === "number") {
      return this.#post("tell", Number.isFinite(result) ? { ...about, value: result } : { ...about, state: "failed", message: `the value is ${result}` });
    }
    return this.#post("tell", "state" in result ? { ...about, ...result } : { ...about, metrics: finite(result) });
  }
  heartbeat(study, trial, lease = 60) {
    return this.#post("heartbeat", { study, trial: trial.id, attempt: trial.attempt, lease });
  }

  // Ask and tell until the study is finished. `objective(trial)` returns a number or metrics by name.
  async run(study, objective, { lease = 60 } = {}) {
    for (;;) {
      const { trials, state } = await this.ask(study, { lease });
      if (state === "finished") return this.read(study, { count: 0 });
      if (state === "wait") { await pause(1); continue; }
      const [trial] = trials;
      const beat = setInterval(() => this.heartbeat(study, trial, lease).catch(() => {}), (1000 * lease) / 3);
      let result;
      try {
        result = await objective(trial);
      } catch (error) {
        result = { state: "failed", message: String(error) };
      } finally {
        clearInterval(beat);
      }
      await this.tell(study, trial, result);
    }
  }

  async #facts(name, query) { return (await this.#get(name, query)).facts; }
  #get(name, query) { return this.#call("GET", `${name}?${new URLSearchParams(query)}`); }
  #post(name, body) { return this.#call("POST", name, JSON.stringify(body), crypto.randomUUID()); }

  async #call(method, path, body, key) {
    const headers = { authorization: `Bearer ${this.token}` };
    if (key) Object.assign(headers, { "idempotency-key": key, "content-type": "application/json" });
    const deadline = Date.now() + 1000 * this.timeout;
    for (let wait = 0.05; ; wait = Math.min(2 * wait, 1)) {
      let error;
      try {
        const response = await fetch(`${this.url}/api/${path}`, { method, headers, body });
        if (response.ok) return await response.json();
        const said = await response.json().catch(() => ({ error: "StorageError", message: response.statusText }));
        error = new ScrimpError(response.status, said.error, said.message);
        if (!RETRIED.has(response.status)) throw error;
      } catch (lost) {
        if (lost === error) throw lost;
        error = lost;
      }
      if (Date.now() > deadline) throw error;
      await pause(wait);
    }
  }
}

// JSON has no NaN; the server takes null for a metric that is not finite.
function finite(metrics) {
  return Object.fromEntries(Object.entries(metrics).map(([name, value]) => [name, Number.isFinite(value) ? value : null]));
}
