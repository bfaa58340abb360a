// Keeps a page up to date: the server says that something changed, the page is fetched again, and the parts that differ are
// replaced. Nothing is added to what is shown, so nothing is shown twice.
"use strict";

const status = document.getElementById("connection");
let busy = false, again = false, timer = 0, last = -Infinity, pause = 0;

// The page as it was fetched last, and its name: the server sends the difference to it, as ranges of it and new texts.
let text = "", tag = "-";
async function take(response) {
  const isDifference = response.headers.get("content-type")?.startsWith("application/json");
  const parts = isDifference ? await response.json() : [await response.text()];
  text = parts.map((part) => typeof part === "string" ? part : text.slice(part[0], part[0] + part[1])).join("");
  tag = response.headers.get("cliq-page") ?? "-";
}

async function refresh() {
  if (busy) { again = true; return; }
  busy = true;
  last = performance.now();
  try {
    const response = await fetch(location.href, { headers: { accept: "text/html", "cliq-page": tag } });
    if (response.redirected && new URL(response.url).pathname === "/signin") { location.reload(); return; }
    if (response.ok) { await take(response); const fresh = new DOMParser().parseFromString(text, "text/html"); moments(fresh); show(fresh); }
  } catch { /* The stream reports connection problems. */ }
  busy = false;
  pause = Math.max(80, 4 * (performance.now() - last));
  if (again) { again = false; soon(); }
}

// At once, and then not more often than every 80 ms, and a fifth of the time at most: a page of thousands of phases takes the server long.
function soon() {
  if (!timer) timer = setTimeout(() => { timer = 0; refresh(); }, Math.max(0, last + pause - performance.now()));
}

// Times in the zone of the person, or of a schedule. The exact time is beside.
function moments(part) {
  for (const time of part.querySelectorAll("time[data-moment]:not([data-told])")) {
    try {
      const timeZone = time.dataset.zone, at = new Date(time.dateTime);
      time.textContent = at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short", timeZone }) + (timeZone ? ` ${timeZone}` : "");
      time.dataset.told = "1";
    } catch { /* A zone that the browser does not know: UTC stays. */ }
  }
}
moments(document);

// Words that came while a page was made and fetched are newer than those in it.
const spoken = new Map();
function show(fresh) {
  for (const part of document.querySelectorAll("[data-mirror]")) {
    const next = fresh.getElementById(part.id);
    if (next) { part.className = next.className; part.hidden = next.hidden; }
  }
  replace(fresh);
  document.querySelectorAll("[data-list]").forEach((list) => reconcile(list, fresh.getElementById(list.id)));
  for (const [of, { text, at }] of spoken) if (performance.now() - at < 3000) say(of, text); else spoken.delete(of);
  const needs = fresh.querySelector("[data-needs]");
  if (needs) attention(Number(needs.dataset.needs));
}

// A card that a person uses stays as it is. Others are replaced where they differ, in the order of the server.
function reconcile(list, next) {
  if (!next) return;
  const known = new Map([...list.children].map((child) => [child.id, child]));
  const isUsed = (card) => card.contains(document.activeElement) || card.querySelector("details[open]") || isFilled(card);
  const wanted = [...next.children].map((child) => {
    const old = known.get(child.id);
    known.delete(child.id);
    return old && (old.outerHTML === child.outerHTML || isUsed(old)) ? old : child;
  });
  wanted.push(...[...known.values()].filter(isUsed));
  if (wanted.length !== list.children.length || wanted.some((child, n) => child !== list.children[n])) list.replaceChildren(...wanted);
}

// How many runs need a person: in the navigation, the title, the icon, and as a notification if the person wants one.
let needed = null;
function attention(needs) {
  const count = document.getElementById("needed"), icon = document.querySelector("link[rel=icon]");
  if (count) { count.textContent = needs ? ` ${needs}` : ""; count.setAttribute("aria-label", needs ? `, ${needs} need you` : ""); }
  document.title = (needs ? `(${needs}) ` : "") + document.title.replace(/^\(\d+\) /, "");
  icon.dataset.plain ??= icon.getAttribute("href");
  icon.href = needs ? icon.dataset.alert : icon.dataset.plain;
  if (needed !== null && needs > needed && document.hidden && wantsNotices()) new Notification("cliq", { body: needs === 1 ? "One run needs you." : `${needs} runs need you.`, tag: "cliq" });
  needed = needs;
}
const wantsNotices = () => window.Notification?.permission === "granted" && localStorage.getItem("cliq-notices") === "on";
const start = document.querySelector("[data-needs]");
if (start) attention(Number(start.dataset.needs));
const notices = document.getElementById("notify");
if (notices && window.Notification) {
  const label = () => { notices.hidden = false; notices.setAttribute("aria-pressed", String(wantsNotices())); notices.textContent = wantsNotices() ? "Notifies you" : "Notify me"; };
  notices.addEventListener("click", async () => {
    if (wantsNotices()) localStorage.setItem("cliq-notices", "off");
    else if (await Notification.requestPermission() === "granted") localStorage.setItem("cliq-notices", "on");
    label();
  });
  label();
}
// Forms come when they are opened: a page of hundreds of runs stays small.
document.addEventListener("toggle", async (toggled) => {
  const details = toggled.target, place = details.querySelector?.("[data-lazy-place]");
  if (!details.dataset?.lazy || !details.open || !place || place.dataset.isThere) return;
  place.dataset.isThere = "1";
  try {
    const response = await fetch(details.dataset.lazy);
    if (!response.ok) return;
    place.innerHTML = await response.text();
    rove(place);
    place.querySelectorAll("[name=back]").forEach((back) => { back.value = location.pathname + location.search; });
    place.querySelector("textarea, select, input:not([type=hidden])")?.focus();
  } catch { delete place.dataset.isThere; }
}, true);
// Changes: the number of a line opens the form for a comment below it. Of all numbers of a file one is in the tab order; arrow keys go on from it.
function rove(part) {
  part.querySelectorAll("table.diff").forEach((table) => table.querySelectorAll("a[data-comment]").forEach((link, n) => { link.tabIndex = n ? -1 : 0; }));
}
rove(document);
// After a comment was sent: on from its line, once the browser has gone to it.
const commented = location.hash === "#said" && document.getElementById("said");
if (commented) addEventListener("load", () => setTimeout(() => {
  let row = commented.previousElementSibling;
  while (row?.classList.contains("note-row")) row = row.previousElementSibling;
  const links = row?.querySelectorAll("a[data-comment]") ?? [];
  const link = [...links].find((link) => link.dataset.comment === new URLSearchParams(location.search).get("said"));
  if (link) {
    link.closest("table").querySelectorAll("a[data-comment]").forEach((other) => { other.tabIndex = -1; });
    link.tabIndex = 0;
    link.focus({ preventScroll: true });
  }
}));
function closeComment() {
  const row = document.getElementById("comment")?.closest("tr");
  const link = row?.opener;
  row?.remove();
  link?.focus();
}
document.addEventListener("click", async (click) => {
  if (click.target.closest?.("[data-cancel]") && document.getElementById("comment")?.closest("tr").opener) { click.preventDefault(); closeComment(); return; }
  const link = click.target.closest?.("a[data-comment]");
  if (!link || click.ctrlKey || click.metaKey || click.shiftKey || click.button) return;
  click.preventDefault();
  const response = await fetch(`${link.href.replace(/#.*/, "")}&part=comment`).catch(() => null);
  if (!response?.ok) { location.href = link.href; return; }
  closeComment();
  const row = document.createElement("tr"), cell = row.insertCell();
  [row.className, row.opener, cell.colSpan, cell.innerHTML] = ["note-row", link, 4, await response.text()];
  let after = link.closest("tr");
  while (after.nextElementSibling?.classList.contains("note-row")) after = after.nextElementSibling;
  after.after(row);
  row.querySelector("textarea")?.focus();
});
document.addEventListener("keydown", (key) => {
  // What is typed is given up by "Cancel" alone.
  if (key.key === "Escape" && key.target.closest?.("#comment") && !document.getElementById("comment-text").value.trim()) closeComment();
  if (!key.target.matches?.("a[data-comment]") || !["ArrowDown", "ArrowUp"].includes(key.key)) return;
  key.preventDefault();
  const links = [...key.target.closest("table").querySelectorAll("a[data-comment]")];
  const next = links[links.indexOf(key.target) + (key.key === "ArrowDown" ? 1 : -1)];
  if (next) { [key.target.tabIndex, next.tabIndex] = [-1, 0]; next.focus(); }
});

// Times that go on.
setInterval(() => document.querySelectorAll("[data-since]").forEach((time) => {
  const seconds = Math.max(0, Math.floor((Date.now() - Date.parse(time.dataset.since)) / 1000));
  const [h, m, s] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  time.textContent = h ? `${h}h ${String(m).padStart(2, "0")}m` : m ? `${m}m ${String(s).padStart(2, "0")}s` : `${s}s`;
}), 1000);

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
  return source;
}

const events = document.querySelector("[data-events]");
if (events) {
  const stream = follow(events.dataset.events, ["run_queued", "run_dispatched", "run_requeued", "run_waiting", "run_woken", "run_not_started", "run_not_resumed", "orchestrator_died",
    "cancel_requested_by_caller", "run_started", "run_resumed", "run_interrupted", "phase_started", "agent_started", "commands_finished",
    "usage_reported", "review_waits", "agent_completed", "work_failed", "verdict", "verdict_rejected", "phase_completed", "phase_escalated", "phase_reset",
    "phase_stopped", "phase_skipped", "phase_decided", "items_started", "item_failed", "items_merged", "merge_conflict", "retry_scheduled",
    "retry_delayed", "retry_due", "review_idle", "run_parked", "steering_received", "steering_delivered", "access_refused", "draining", "warning", "cancel_requested", "orchestrator_failed", "notify_requested", "run_finished"]);
  stream.addEventListener("words", speak);
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
      moments(fresh);
      replace(fresh);
      if (!fresh.querySelector("#decision fieldset.stack[disabled]")) return;
      document.querySelectorAll("#decision fieldset, #decision select").forEach((control) => { control.disabled = true; });
      clearInterval(look);
    } catch { /* The page of a run is gone once it is decided. */ }
  }, 2000);
}
const changes = document.querySelector("[data-changes]");
if (changes) {
  const stream = follow(changes.dataset.changes, ["change"]);
  stream.addEventListener("words", speak);
}
// The words of an agent go to their place, without a request.
function speak(event) {
  const { of, text } = JSON.parse(event.data);
  if (text) { spoken.set(of, { text, at: performance.now() }); say(of, text); } else spoken.delete(of);
}
function say(of, text) {
  document.querySelectorAll(`[data-words="${CSS.escape(of)}"]`).forEach((place) => {
    const shown = place.closest("svg") ? [...text].slice(0, 28).join("") : text;
    if (place.textContent !== shown) place.textContent = shown;
  });
}

// Ctrl-K: a way to every page, and to runs by their words. `/` goes to the search.
const palette = document.createElement("dialog");
palette.className = "palette";
palette.setAttribute("aria-label", "Go to");
palette.innerHTML = `<input type="search" aria-label="Page or run" placeholder="Page, or words of a run" aria-controls="palette-list" autocomplete="off"><ul id="palette-list" class="plain"></ul>`;
const [asked, found] = [palette.querySelector("input"), palette.querySelector("ul")];
let round = 0;
async function look() {
  const now = ++round, words = asked.value.trim().toLowerCase();
  const entry = (href, name, about) => {
    const item = Object.assign(document.createElement("li"), { innerHTML: `<a></a> <span class="quiet"></span>` });
    [item.children[0].href, item.children[0].textContent, item.children[1].textContent] = [href, name, about];
    return item;
  };
  const links = [...document.querySelectorAll("header.top nav a, header.top a.primary")].filter((link) => link.textContent.toLowerCase().includes(words));
  found.replaceChildren(...links.map((link) => entry(link.getAttribute("href"), link.firstChild.textContent.trim(), "")));
  if (words.length < 2) return;
  try {
    const response = await fetch(`/api/v1/runs?${new URLSearchParams({ q: words, limit: 8 })}`);
    const runs = response.ok ? (await response.json()).runs : [];
    if (now === round) found.append(...runs.map((run) => entry(`/runs/${run.id}`, run.title, `${run.state} · ${run.team}`)));
  } catch { /* Pages are listed all the same. */ }
}
asked.addEventListener("input", look);
palette.addEventListener("keydown", (key) => {
  const links = [...found.querySelectorAll("a")], at = links.indexOf(document.activeElement);
  if (key.key === "ArrowDown" || key.key === "ArrowUp") {
    key.preventDefault();
    (links[at + (key.key === "ArrowDown" ? 1 : -1)] ?? asked).focus();
  } else if (key.key === "Enter" && document.activeElement === asked) {
    key.preventDefault();
    if (links.length) links[0].click();
    else look().then(() => found.querySelector("a")?.click());
  }
});
document.addEventListener("keydown", (key) => {
  // The editor of the studio is in a shadow tree.
  const isWriting = key.composedPath()[0].closest?.("input, textarea, select, [contenteditable]");
  if ((key.ctrlKey || key.metaKey) && key.key.toLowerCase() === "k") {
    key.preventDefault();
    if (!palette.isConnected) document.body.append(palette);
    asked.value = "";
    palette.showModal();
    look();
  } else if (key.key === "/" && !isWriting && !key.ctrlKey && !key.metaKey && !key.altKey && document.querySelector("header.top nav")) {
    key.preventDefault();
    const search = document.querySelector("input[type=search]:not(dialog input)");
    if (search) search.focus(); else location.href = "/runs#q";
  }
});
if (location.hash === "#q") document.getElementById("q")?.focus();

// A log that grows: its new lines come with their numbers and colours.
const steering = /\x1b\[[0-9;:?]*[ -\/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b./g;
const control = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200e\u200f]/g;
const harmless = (text) => text.replace(/\r\n?/g, "\n").replace(steering, "").replace(control, "\ufffd");
const log = document.querySelector("[data-log]"), MOST = 5000;
if (log) {
  const follows = document.getElementById("follow");
  let growing = false;
  setInterval(async () => {
    if (growing || document.hidden) return;
    growing = true;
    try {
      const response = await fetch(`${log.dataset.log}?after=${log.dataset.offset}&line=${log.dataset.line}`);
      if (response.ok) {
        const text = await response.text();
        log.dataset.offset = response.headers.get("x-next-offset");
        log.dataset.line = response.headers.get("x-next-line");
        if (text) {
          log.insertAdjacentHTML("beforeend", text);
          while (log.childElementCount > MOST) log.firstElementChild.remove();
          if (follows?.checked) log.scrollTop = log.scrollHeight;
        }
      }
    } catch { /* The next try may succeed. */ }
    growing = false;
  }, 1000);
}
// From one line that reports an error to the next.
const nextError = document.getElementById("next-error");
if (nextError && document.querySelector("pre#log [data-error]")) {
  nextError.hidden = false;
  let at = -1;
  nextError.addEventListener("click", () => {
    const all = [...document.querySelectorAll("pre#log [data-error]")];
    at = (at + 1) % all.length;
    const follows = document.getElementById("follow");
    if (follows) follows.checked = false;
    document.querySelector("pre#log .at")?.classList.remove("at");
    all[at].classList.add("at");
    all[at].scrollIntoView({ block: "center" });
    all[at].querySelector("a").focus({ preventScroll: true });
  });
}
// The last lines of a log in a panel, which is replaced now and then.
setInterval(async () => {
  const tail = document.querySelector("pre[data-tail]");
  if (!tail || document.hidden) return;
  try {
    const response = await fetch(`${tail.dataset.tail}?offset=${tail.dataset.offset}&limit=65536`);
    if (!response.ok) return;
    const text = await response.text();
    tail.dataset.offset = response.headers.get("x-next-offset");
    if (text) tail.textContent = (tail.textContent + harmless(text)).split("\n").slice(-21).join("\n");
  } catch { /* The next try may succeed. */ }
}, 1000);
if (document.querySelector("pre#log") && !location.hash && !location.search) { const end = document.querySelector("pre#log"); end.scrollTop = end.scrollHeight; }
// What a model is asked takes long: the button says that it is under way, and for how long.
document.addEventListener("submit", (submit) => {
  const form = submit.target, button = form.querySelector?.("button[type=submit]");
  if (!form.dataset?.slow || !button) return;
  const begun = Date.now(), place = Object.assign(document.createElement("p"), { className: "hint" });
  place.setAttribute("role", "status");
  button.after(place);
  // A disabled button would not be sent, so not before the form is.
  setTimeout(() => { button.disabled = true; });
  const tell = () => { place.textContent = `${form.dataset.slow}: ${Math.round((Date.now() - begun) / 1000)} s`; };
  tell();
  const clock = setInterval(tell, 1000);
  addEventListener("pageshow", () => { clearInterval(clock); button.disabled = false; place.remove(); }, { once: true });
});
