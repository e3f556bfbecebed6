// Follows jobs, workflows and activity in a browser. No dependencies.
//
//   import { followJob } from "/v1/events.js";
//   const stop = followJob("https://api.example.org", jobId, {
//     token: () => session.accessToken,
//     onState: (state) => showProgress(state.progress),
//     onText: (text, whole) => show(whole),
//     onEnd: (state) => console.log(state.state),
//   });

/** Follow a job until it has ended. Returns a function that stops it. */
export function followJob(base, job, options = {}) {
  return follow(base, `/v1/jobs/${encodeURIComponent(job)}/events`, options);
}

/** Follow a workflow until it has ended. Returns a function that stops it. */
export function followWorkflow(base, workflow, options = {}) {
  return follow(base, `/v1/workflows/${encodeURIComponent(workflow)}/events`, options);
}

/** Follow the activity of all jobs; for operators. Returns a function that stops it. */
export function followActivity(base, options = {}) {
  return follow(base, "/v1/events", options);
}

function follow(base, path, options) {
  const address = String(base).replace(/\/+$/, "");
  let source = null;
  let timer = null;
  let stopped = false;
  let failures = 0;
  let last = null;
  let text = "";

  const stop = () => {
    stopped = true;
    clearTimeout(timer);
    if (source) source.close();
  };

  const again = (error) => {
    if (source) source.close();
    if (stopped) return;
    failures += 1;
    // Twice as long after each failure, up to half a minute, and different in each browser.
    const pause = Math.min(30000, 1000 * 2 ** Math.min(failures - 1, 5)) * (0.5 + Math.random());
    if (options.onError) options.onError(error, pause);
    timer = setTimeout(open, pause);
  };

  const open = async () => {
    let href;
    try {
      const token = typeof options.token === "function" ? await options.token() : options.token;
      const response = await fetch(`${address}${path}/ticket`, {
        method: "POST",
        headers: token ? { Authorization: `Bearer ${token}` } : {},
      });
      if (!response.ok) {
        const problem = await response.json().catch(() => ({}));
        const error = Object.assign(new Error(problem.detail || response.statusText), {
          status: response.status,
          code: problem.code,
        });
        // Asking again does not help where the caller may not read it, or it does not exist.
        if ([400, 403, 404, 405, 422].includes(response.status)) {
          stopped = true;
          if (options.onError) options.onError(error, null);
          return;
        }
        throw error;
      }
      href = (await response.json()).href;
    } catch (error) {
      again(error);
      return;
    }
    if (stopped) return;
    const after = last === null ? "" : `&after=${encodeURIComponent(last)}`;
    source = new EventSource(`${address}${href}${after}`);
    source.onopen = () => {
      failures = 0;
    };
    // Also at the timeout of the stream and the end of the token. A ticket opens a stream within a
    // minute only, so each connection needs another one.
    source.onerror = () => again(new Error("the stream was interrupted"));
    const on = (kind, take) =>
      source.addEventListener(kind, (event) => {
        if (stopped) return;
        if (event.lastEventId) last = event.lastEventId;
        take(JSON.parse(event.data));
      });
    on("state", (state) => options.onState && options.onState(state));
    on("chunk", (chunk) => {
      text += chunk.text;
      if (options.onText) options.onText(chunk.text, text);
    });
    on("reset", () => {
      text = "";
      if (options.onText) options.onText("", text);
    });
    on("end", (state) => {
      stop();
      if (options.onState) options.onState(state);
      if (options.onEnd) options.onEnd(state);
    });
    on("activity", (line) => options.onLine && options.onLine(line));
    on("missed", (lost) => options.onMissed && options.onMissed(lost.lines));
  };

  open();
  return stop;
}
