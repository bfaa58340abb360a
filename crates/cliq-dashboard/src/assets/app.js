// Keeps a page up to date: the server says that something changed, the page is fetched again, and the parts that differ are
// replaced. Nothing is added to what is shown, so nothing is shown twice.
"use strict";

const status = document.getElementById("connection");
let busy = false, again = false, timer = 0, last = -Infinity, pause = 0;

async function refresh() {
  if (busy) { again = true; return; }
  busy = true;
  last = performance.now();
  try {
    const response = await fetch(location.href, { headers: { accept: "text/html" } });
    if (response.redirected && new URL(response.url).pathname === "/signin") { location.reload(); return; }
    if (response.ok) replace(new DOMParser().parseFromString(await response.text(), "text/html"));
  } catch { /* The stream reports connection problems. */ }
  busy = false;
  pause = Math.max(80, 4 * (performance.now() - last));
  if (again) { again = false; soon(); }
}

// At once, and then not more often than every 80 ms, and a fifth of the time at most: a page of thousands of phases takes the server long.
function soon() {
  if (!timer) timer = setTimeout(() => { timer = 0; refresh(); }, Math.max(0, last + pause - performance.now()));
}

// Whether a person has filled in something that is not sent yet.
function isFilled(part) {
  return [...part.querySelectorAll("input, textarea")].some((field) => field.type === "hidden" ? false : field.value !== field.defaultValue || field.checked !== field.defaultChecked);
}

function replace(fresh) {
  for (const part of document.querySelectorAll("[data-live]")) {
    const next = fresh.getElementById(part.id);
    // What a person is about to use is left alone.
    if (!next || next.innerHTML === part.innerHTML || part.querySelector("select:focus, input:focus, textarea:focus") || isFilled(part)) continue;
    const focused = part.contains(document.activeElement) ? [...part.querySelectorAll("a, button, summary")].indexOf(document.activeElement) : -1;
    const open = [...part.querySelectorAll("details")].map((details) => details.open);
    part.replaceChildren(...next.childNodes);
    part.querySelectorAll("details").forEach((details, n) => { details.open = open[n] ?? details.open; });
    if (focused >= 0) [...part.querySelectorAll("a, button, summary")][focused]?.focus();
  }
}

function follow(url, kinds) {
  let lost = false;
  const source = new EventSource(url);
  source.onopen = () => { if (lost) soon(); lost = false; status.textContent = ""; };
  source.onerror = () => {
    lost = true;
    status.textContent = source.readyState === EventSource.CLOSED ? "" : "The server does not answer. Trying again …";
    if (source.readyState === EventSource.CLOSED) refresh();
  };
  source.addEventListener("end", () => { source.close(); status.textContent = ""; refresh(); });
  for (const kind of kinds) source.addEventListener(kind, soon);
}

const events = document.querySelector("[data-events]");
if (events) {
  follow(events.dataset.events, ["run_queued", "run_dispatched", "run_requeued", "run_waiting", "run_woken", "run_not_started", "run_not_resumed", "orchestrator_died",
    "cancel_requested_by_caller", "run_started", "run_resumed", "run_interrupted", "phase_started", "agent_started", "commands_finished",
    "usage_reported", "review_waits", "agent_completed", "work_failed", "verdict", "verdict_rejected", "phase_completed", "phase_escalated", "phase_reset",
    "phase_stopped", "phase_skipped", "phase_decided", "items_started", "item_failed", "items_merged", "merge_conflict", "retry_scheduled",
    "retry_delayed", "retry_due", "review_idle", "run_parked", "steering_received", "steering_delivered", "access_refused", "draining", "warning", "cancel_requested", "orchestrator_failed", "notify_requested", "run_finished"]);
}
// A phase is opened beside the graph without loading the page again.
document.addEventListener("click", (click) => {
  const link = click.target.closest?.("a[data-panel]");
  if (!link || click.ctrlKey || click.metaKey || click.shiftKey || click.button) return;
  click.preventDefault();
  history.pushState(null, "", link.getAttribute("href"));
  refresh().then(() => { const panel = document.getElementById("panel"); panel?.focus({ preventScroll: innerWidth > 900 }); });
});
addEventListener("popstate", () => { if (document.getElementById("panel")) refresh(); });
// A page that slept may have missed events.
addEventListener("pageshow", (shown) => { if (shown.persisted) refresh(); });
document.addEventListener("visibilitychange", () => { if (!document.hidden && document.querySelector("[data-live]")) soon(); });
// A transcript grows without events.
if (events && document.querySelector("#transcript[data-live]")) setInterval(soon, 2000);

// A review: another reviewer may decide it while this page is open.
const review = document.querySelector("[data-review]");
if (review) {
  const look = setInterval(async () => {
    try {
      const response = await fetch(review.dataset.review);
      if (!response.ok) return;
      const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
      replace(fresh);
      if (!fresh.querySelector("#decision fieldset.stack[disabled]")) return;
      document.querySelectorAll("#decision fieldset, #decision select").forEach((control) => { control.disabled = true; });
      clearInterval(look);
    } catch { /* The page of a run is gone once it is decided. */ }
  }, 2000);
}
const changes = document.querySelector("[data-changes]");
if (changes) follow(changes.dataset.changes, ["change"]);

// A log that grows: what is new is appended as text.
const log = document.querySelector("[data-log]");
if (log) {
  const steering = /\x1b\[[0-9;:?]*[ -\/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b./g;
  const control = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200e\u200f]/g;
  let offset = Number(log.dataset.offset);
  const decoder = new TextDecoder();
  const grow = async () => {
    try {
      const response = await fetch(`${log.dataset.log}?offset=${offset}&limit=262144`);
      if (!response.ok) return;
      const text = decoder.decode(await response.arrayBuffer(), { stream: true });
      offset = Number(response.headers.get("x-next-offset"));
      if (!text) return;
      const atEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 20;
      log.append(text.replace(/\r\n?/g, "\n").replace(steering, "").replace(control, "\ufffd"));
      if (atEnd) log.scrollTop = log.scrollHeight;
    } catch { /* The next try may succeed. */ }
  };
  setInterval(grow, 1000);
}
if (document.querySelector("pre#log")) { const end = document.querySelector("pre#log"); end.scrollTop = end.scrollHeight; }
