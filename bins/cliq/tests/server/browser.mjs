// A person at the dashboard, in a real Chromium. Prints what it does; the last line is ALL DONE.
import { createRequire } from "node:module";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import assert from "node:assert/strict";

const require = createRequire(process.env.NODE_MODULES + "/");
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const [, , link, pictures] = process.argv;
const base = new URL(link).origin;
const replies = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/** Asks the machine to do something, and waits until it is done. */
const tell = async (what) => { console.log(what); await replies.next(); };

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const context = await browser.newContext();
const page = await context.newPage();
const problems = [];
page.on("pageerror", (error) => problems.push(error.message));
page.on("console", (message) => { if (message.text().includes("Content Security Policy")) problems.push(message.text()); });

console.log("sign in by the link");
await page.goto(link);
await page.waitForURL(base + "/");

console.log("start a run by the form of its team");
await page.getByRole("link", { name: "New run" }).click();
await page.getByLabel("Team").selectOption("@local/show");
await page.getByRole("button", { name: "Choose" }).click();
await page.getByLabel("What is to be done").fill("Build it **well**");
await page.getByLabel("who (required)").fill("me & <you>");
await page.getByRole("button", { name: "Start" }).click();
await page.waitForURL(/\/runs\/[0-9a-f-]{36}$/);
const run = page.url();
await page.evaluate(() => { window.neverReloaded = true; });

console.log("states change without a reload");
const phase = (name, state) => page.locator(`#phase-${name} .badge.${state}`).waitFor();
await phase("build", "running");
await page.locator("#graph .node.running").first().waitFor();
await tell("GO build");
await phase("build", "completed");

console.log("a gate's loop is seen");
await page.locator("#timeline").getByText("quality: ROUTE to mend").waitFor();
await phase("mend", "running");
await tell("GO mend");
await phase("quality", "completed");
await phase("ship", "running");

console.log("the server dies and comes back");
await tell("RESTART");
await tell("GO ship");
await phase("ship", "completed");
await page.locator("#summary .badge.completed").waitFor();
await page.getByText("run COMPLETED").waitFor();
assert.equal(await page.locator("#connection").textContent(), "");
assert.equal(await page.evaluate(() => window.neverReloaded), true, "the page was never loaded again");
const steps = () => page.locator("#timeline li").allTextContents();
const live = await steps();
await page.reload();
assert.deepEqual(live, await steps(), "what was shown live is what a new page shows: nothing twice, nothing missing");

console.log("a log grows while it is looked at, and a cancel works");
await page.goto(base + "/runs/new?team=@local/long");
await page.getByRole("button", { name: "Start" }).click();
await page.locator("#phase-p0 .badge.running").waitFor();
const long = page.url();
await page.getByRole("button", { name: "Cancel" }).click();
await page.locator("#summary .badge.cancelled").waitFor();
await tell("WAIT ship");
await page.goto(base + "/runs/new?team=@local/show");
await page.getByLabel("who (required)").fill("x");
await page.getByRole("button", { name: "Start" }).click();
await phase("ship", "running");
await page.goto(page.url() + "/logs/orchestrator");
await page.locator("pre.log", { hasText: "ship: started" }).waitFor();
assert.equal(await page.getByText("run COMPLETED").count(), 0);
await tell("GO ship");
await page.locator("pre.log", { hasText: "COMPLETED" }).waitFor();
await page.goBack();
await page.locator("#logs a", { hasText: "ship." }).click();
await page.locator("pre.log", { hasText: "line 8" }).waitFor();
assert.equal((await page.locator("pre.log").textContent()).match(/line 3/g).length, 1, "each line once");
assert.deepEqual(problems, [], "no script failed, and nothing that the policy forbids was tried");

console.log("a phase opens beside the graph, without loading the page again");
await page.goto(run);
await page.evaluate(() => { window.neverReloaded = true; });
await page.locator("#graph a[data-panel]", { hasText: "mend" }).focus();
await page.keyboard.press("Enter");
await page.locator("#panel h2", { hasText: "mend" }).waitFor();
assert.match(page.url(), /phase=mend/);
await page.locator("#graph a[data-panel]", { hasText: "quality" }).click();
await page.locator("#panel h2", { hasText: "quality" }).waitFor();
await page.locator("#panel", { hasText: "good" }).waitFor();
await page.goBack();
await page.locator("#panel h2", { hasText: "mend" }).waitFor();
assert.equal(await page.evaluate(() => window.neverReloaded), true, "the page was never loaded again");
await page.getByRole("link", { name: "Timeline" }).click();
assert.equal(await page.locator(".gantt .span.back").count(), 1, "the round that the gate sent back");

console.log("runs are found by words, and several are cancelled at once");
await page.goto(base + "/runs/new?team=@local/long");
await page.getByLabel("What is to be done").fill("Never ending work");
await page.getByRole("button", { name: "Start" }).click();
await page.locator("#phase-p0 .badge.running").waitFor();
await page.goto(base + "/");
await page.getByLabel("Search", { exact: true }).fill("never end");
await page.getByRole("button", { name: "Search" }).click();
await page.getByRole("link", { name: "Never ending work" }).waitFor();
assert.equal(await page.locator("#runs tbody tr").count(), 1);
await page.getByLabel("Select Never ending work").check();
await page.getByRole("button", { name: "Cancel selected runs" }).click();
await page.waitForURL(base + "/");
await page.locator("#runs tr", { hasText: "Never ending work" }).locator(".badge.cancelled").waitFor();

console.log("a run is started again with changes, and two are compared");
await page.goto(run);
await page.getByRole("link", { name: "Run again with changes" }).click();
assert.equal(await page.getByLabel("who (required)").inputValue(), "me & <you>");
assert.equal(await page.getByLabel("What is to be done").inputValue(), "Build it **well**");
await page.goto(base + "/teams/@local/show");
await page.getByText(/2 of 2 runs completed/).waitFor();
for (const box of await page.locator("main table input[type=checkbox]").all()) await box.check();
await page.getByRole("button", { name: "Compare two" }).click();
await page.getByRole("heading", { name: "Compare" }).waitFor();
assert.equal(await page.locator("main table").nth(1).locator("tbody tr").count(), 4);

console.log("without script it still shows, and a form works");
const state = await context.storageState();
const plain = await browser.newContext({ storageState: state, javaScriptEnabled: false });
const still = await plain.newPage();
await still.goto(run);
assert.equal(await still.locator("#phases tbody tr").count(), 4);
assert.equal(await still.locator("#graph svg .node").count(), 4);
await still.goto(base + "/runs/new?team=@local/show");
await still.getByLabel("who (required)").evaluate((input) => input.removeAttribute("required")).catch(() => {});
await still.locator("form.stack button").click();
if (still.url().endsWith("/runs/new")) await still.getByText("input `who` is missing").waitFor();
await plain.close();

/** A picture of 48 pixels in width as brightness, so that fonts of another machine make no difference. */
const thumbnail = (view, picture) => view.evaluate(async (data) => {
  const image = new Image();
  image.src = "data:image/png;base64," + data;
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: 48, height: Math.max(1, Math.round(48 * image.height / image.width)) });
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  const pixels = context.getImageData(0, 0, canvas.width, canvas.height).data;
  return { height: canvas.height, brightness: Array.from({ length: pixels.length / 4 }, (_, n) => Math.round((pixels[4 * n] + pixels[4 * n + 1] + pixels[4 * n + 2]) / 3)) };
}, picture.toString("base64"));
// Pages that say the same in each run. UPDATE_PICTURES=1 takes what is there as the new picture.
const LIKE_BEFORE = ["/design", "/plans", "/signals"];
const before = new URL("pictures.json", import.meta.url);
const known = existsSync(before) ? JSON.parse(readFileSync(before, "utf8")) : {};
const seen = {};
const compare = (file, { height, brightness }) => {
  seen[file] = { height, brightness: Buffer.from(brightness).toString("base64") };
  if (process.env.UPDATE_PICTURES) return;
  const old = known[file];
  assert.ok(old, `${file}: there is no picture to compare with; UPDATE_PICTURES=1 takes this one`);
  assert.ok(Math.abs(height - old.height) <= Math.max(3, old.height * 0.12), `${file}: ${height} lines, before ${old.height}`);
  const other = Buffer.from(old.brightness, "base64");
  const length = Math.min(other.length, brightness.length);
  const difference = brightness.slice(0, length).reduce((sum, value, n) => sum + Math.abs(value - other[n]), 0) / length;
  assert.ok(difference < 14, `${file} looks different: ${difference.toFixed(1)} of 255 on average; UPDATE_PICTURES=1 takes it as the new one`);
};

console.log("accessible, light, and fit for every screen");
const paths = ["/", "/?q=show&within=1d", "/design", ...["", "?phase=quality", "/timeline", "/transcripts", "/changes", "/artifacts", "/cost", "/events", "/files?path=mended"].map((part) => new URL(run).pathname + part), new URL(long).pathname, "/runs/new?team=@local/show", "/teams", "/teams/@local/show", `/runs/new?like=${run.split("/").pop()}`, `/compare?id=${run.split("/").pop()}&id=${long.split("/").pop()}`, "/usage?days=7", "/plans", "/signals", "/projects",
  "/usage", new URL(run).pathname + "/logs/orchestrator", new URL(run).pathname + "/handoffs/quality/mend", new URL(run).pathname + "/files"];
for (const scheme of ["light", "dark"]) {
  for (const [name, viewport] of [["desktop", { width: 1280, height: 900 }], ["phone", { width: 390, height: 844 }], ["narrow", { width: 320, height: 700 }]]) {
    const one = await browser.newContext({ storageState: state, colorScheme: scheme, viewport, bypassCSP: true });
    const view = await one.newPage();
    for (const path of paths) {
      const response = await view.goto(base + path, { waitUntil: "load" });
      assert.equal(response.status(), 200, path);
      const paint = await view.evaluate(() => new Promise((done) => {
        const found = () => performance.getEntriesByName("first-contentful-paint")[0];
        if (found()) done(found().startTime); else new PerformanceObserver((list, observer) => { if (found()) { observer.disconnect(); done(found().startTime); } }).observe({ type: "paint", buffered: true });
      }));
      const weight = await view.evaluate(() =>
        ["navigation", "resource"].flatMap((type) => performance.getEntriesByType(type)).reduce((sum, entry) => sum + entry.decodedBodySize, 0));
      const file = (path.replace(/[0-9a-f-]{36}/, "run").replace(/[^a-z0-9]+/gi, "-").replace(/^-|-$/g, "") || "runs") + `-${name}-${scheme}.png`;
      const picture = await view.screenshot({ path: `${pictures}/${file}`, fullPage: true });
      if (LIKE_BEFORE.includes(path)) compare(file, await thumbnail(view, picture));
      await view.addScriptTag({ content: axe });
      const violations = await view.evaluate(async () => (await axe.run()).violations.map((v) => v.id + ": " + v.nodes.map((n) => n.html.slice(0, 160)).join(" ")));
      assert.deepEqual(violations, [], `${path} ${name} ${scheme}`);
      const wide = await view.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wide <= 1, `${path} ${name}: wider than the screen by ${wide}`);
      assert.ok(weight < 150_000, `${path}: ${weight} bytes`);
      if (path === new URL(run).pathname) console.log(`a finished run, ${name}, ${scheme}: ${weight} bytes, first paint after ${paint.toFixed(0)} ms`);
    }
    await one.close();
  }
}
if (process.env.UPDATE_PICTURES) writeFileSync(before, JSON.stringify(seen, null, 1) + "\n");
await browser.close();
console.log("ALL DONE");
process.exit(0);
