// The page of the exports: choose documents, follow the bars, cancel, and load one file or all.
// The token comes in the fragment of the address, which browsers do not send: #token=…

const base = "/api/v1/export";
const token = new URLSearchParams(location.hash.slice(1)).get("token") ?? "";
const element = (id) => document.getElementById(id);
const final = new Set(["completed", "failed", "cancelled"]);
const jobs = new Map();
let batch = null;

async function ask(path, options = {}) {
  const headers = { Authorization: `Bearer ${token}`, ...options.headers };
  const response = await fetch(base + path, { ...options, headers });
  if (!response.ok) {
    const problem = await response.json().catch(() => ({}));
    const fields = Object.entries(problem.facts?.fields ?? {}).map((pair) => pair.join(" "));
    throw new Error([problem.detail ?? response.statusText, ...fields].join("; "));
  }
  return response;
}

const data = async (path, options) => (await (await ask(path, options)).json()).data;
const send = (path, body) =>
  data(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

function say(text) {
  element("message").textContent = text;
}

function node(name, text, attributes = {}) {
  const made = Object.assign(document.createElement(name), attributes);
  if (text !== null) made.textContent = text;
  return made;
}

function button(text, action) {
  return node("button", text, {
    type: "button",
    onclick: () => action().catch((error) => say(error.message)),
  });
}

async function save(response, name) {
  const address = URL.createObjectURL(await response.blob());
  node("a", null, { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

async function listDocuments() {
  const found = await data("/documents");
  element("documents").replaceChildren(
    ...found.map((one) => {
      const row = node("li", null);
      const label = node("label", null, { className: "title" });
      const box = node("input", null, { type: "checkbox", name: "document", value: one.id });
      box.onchange = () => (element("export").disabled = !chosen().length);
      label.append(box, node("span", one.title));
      row.append(label, node("span", `version ${one.version}`, { className: "quiet" }));
      row.dataset.title = one.title;
      return row;
    }),
  );
}

const chosen = () => [...document.querySelectorAll("input[name=document]:checked")].map((box) => box.value);

async function listHistory() {
  const found = await data("/history");
  element("history").replaceChildren(
    ...found.map((one) => {
      const row = node("tr", null);
      const actions = node("td", null);
      actions.append(
        button("Download", async () => {
          await save(await ask(`/download/${one.id}`), one.fileName);
          await listHistory();
        }),
        " ",
        button("Delete", async () => {
          await ask(`/history/${one.id}`, { method: "DELETE" });
          await listHistory();
        }),
      );
      const texts = [one.fileName, `${(one.fileSize / 1024).toFixed(1)} KB`, one.pageCount, one.downloadCount];
      row.append(...texts.map((text) => node("td", text)));
      row.append(node("td", new Date(one.expiresAt).toLocaleDateString()), actions);
      return row;
    }),
  );
}

function show(job) {
  const { bar, status, stop } = job.parts;
  bar.value = job.progress;
  status.textContent = job.error ?? job.status;
  stop.hidden = final.has(job.status);
  const live = [...jobs.values()].filter((one) => !final.has(one.status));
  const shares = live.map((one) => one.progress);
  const mean = live.length ? shares.reduce((sum, one) => sum + one, 0) / live.length : 0;
  element("overall").value = mean;
  element("overall").hidden = !live.length;
  const complete = [...jobs.values()].filter((one) => one.status === "completed");
  element("zip").hidden = batch === null || live.length > 0 || complete.length === 0;
}

function addJob(id, title) {
  const row = node("li", null);
  const bar = node("progress", null, { max: 100, value: 0 });
  const status = node("span", "pending", { className: "quiet" });
  const stop = button("Cancel", () => ask(`/job/${id}`, { method: "DELETE" }));
  row.append(node("span", title, { className: "title" }), bar, status, stop);
  element("jobs").append(row);
  jobs.set(id, { id, status: "pending", progress: 0, error: null, parts: { bar, status, stop } });
}

// Events arrive through fetch, because EventSource cannot send the token.
async function follow(path, change) {
  let last = "";
  for (;;) {
    const headers = last ? { "Last-Event-ID": last } : {};
    const response = await ask(path, { headers });
    if (response.status === 204) return;
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      text += value;
      const parts = text.split("\n\n");
      text = parts.pop();
      for (const part of parts) {
        const lines = Object.fromEntries(part.split("\n").map((line) => line.split(/: (.*)/s).slice(0, 2)));
        if (!lines.event) continue;
        last = lines.id ?? last;
        const event = JSON.parse(lines.data);
        if (lines.event === "timeout") say("Still working …");
        else if (lines.event === "job_error") throw new Error(event.message);
        else change(lines.event, event);
        if (final.has(lines.event)) {
          await reader.cancel();
          return;
        }
      }
    }
  }
}

function change(id, status, progress, error) {
  const job = jobs.get(id);
  Object.assign(job, { status, error: error ?? null });
  job.progress = status === "completed" ? 100 : (progress ?? job.progress);
  show(job);
}

async function start(event) {
  event.preventDefault();
  const documents = chosen();
  const options = Object.fromEntries(new FormData(element("form")));
  delete options.document;
  const titles = new Map(
    [...document.querySelectorAll("#documents li")].map((row) => [row.querySelector("input").value, row.dataset.title]),
  );
  // Half a second, so that a double click is one request.
  element("export").disabled = true;
  setTimeout(() => (element("export").disabled = !chosen().length), 500);
  say("");
  element("running").hidden = false;
  element("jobs").replaceChildren();
  jobs.clear();
  batch = null;
  if (documents.length === 1) {
    const { jobId } = await send("/pdf", { documentId: documents[0], options });
    addJob(jobId, titles.get(documents[0]));
    await follow(`/job/${jobId}/stream`, (name, found) =>
      change(jobId, final.has(name) ? name : found.status, found.progress, found.error),
    );
  } else {
    const made = await send("/batch", { documentIds: documents, options });
    batch = made.batchId;
    for (const one of made.jobs) addJob(one.jobId, titles.get(one.documentId));
    await follow(`/batch/${batch}/stream`, (_name, found) => {
      for (const one of found.jobs) change(one.id, one.status, one.progress, one.error);
    });
  }
  await listHistory();
}

element("form").onsubmit = (event) => start(event).catch((error) => say(error.message));
element("zip").onclick = () =>
  ask(`/batch/${batch}/download?partial=true`)
    .then((response) => save(response, `resumes-${batch}.zip`))
    .catch((error) => say(error.message));
Promise.all([listDocuments(), listHistory()]).catch((error) => say(error.message));
