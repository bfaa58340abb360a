// A person at the dashboard, in a real Chromium. Prints what it does; the last line is ALL DONE.
import { createInterface } from "node:readline";
import assert from "node:assert/strict";
import { chromium, look, person } from "./pages.mjs";

const [, , link] = process.argv;
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

await person(page, async () => {
console.log("sign in by the link");
await page.goto(link);
await page.waitForURL(base + "/");

console.log("start a run by the form of its team");
await page.getByRole("link", { name: "New run" }).click();
await page.locator(".teams .card", { hasText: "@local/show" }).getByText("needs the input who").waitFor();
await page.locator(".teams .card", { hasText: "@cliq/hello-world" }).getByText("needs a model agent").waitFor();
await page.getByLabel("Team").selectOption("@local/long");
await page.getByRole("button", { name: "Choose" }).click();
await page.getByLabel("What is to be done").fill("Build it **well**");
await page.getByLabel("Team").selectOption("@local/show");
await page.getByRole("button", { name: "Choose" }).click();
await page.getByLabel("who (required)").waitFor();
assert.equal(await page.getByLabel("What is to be done").inputValue(), "Build it **well**", "another team keeps what was typed");
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
await page.locator("#phase-quality", { hasText: "waiting" }).waitFor();
await phase("mend", "running");
await tell("GO mend");
await phase("quality", "completed");
await phase("ship", "running");

console.log("the server dies and comes back");
await tell("RESTART");
await tell("GO ship");
await phase("ship", "completed");
await page.locator("#summary .badge.completed").waitFor();
assert.equal(await page.locator("#connection").textContent(), "");
assert.equal(await page.evaluate(() => window.neverReloaded), true, "the page was never loaded again");
const steps = () => page.locator("#phases tr").allTextContents();
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
await page.getByRole("link", { name: "Logs", exact: true }).click();
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
await page.locator("#steps").getByText("quality: ROUTE to mend").waitFor();
await page.getByText("run COMPLETED").waitFor();

console.log("runs are found by words, and several are cancelled at once");
await page.goto(base + "/runs/new?team=@local/long");
await page.getByLabel("What is to be done").fill("Never ending work");
await page.getByRole("button", { name: "Start" }).click();
await page.locator("#phase-p0 .badge.running").waitFor();
await page.goto(base + "/runs");
await page.getByLabel("Search", { exact: true }).fill("never end");
await page.getByRole("button", { name: "Search" }).click();
await page.getByRole("link", { name: "Never ending work" }).waitFor();
assert.equal(await page.locator("#runs tbody tr").count(), 1);
await page.getByLabel("Select Never ending work").check();
await page.getByRole("button", { name: "Cancel selected runs" }).click();
await page.waitForURL(base + "/runs");
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
await still.getByRole("button", { name: "Start" }).click();
if (still.url().endsWith("/runs/new")) await still.locator("[id='input.who-wrong']").getByText("input `who` is missing").waitFor();
await plain.close();

console.log("accessible, light, and fit for every screen");
const paths = ["/", "/runs", "/runs?q=show&within=1d", "/design", ...["", "?phase=quality", "/timeline", "/logs", "/transcripts", "/changes", "/artifacts", "/cost", "/events", "/files?path=mended"].map((part) => new URL(run).pathname + part), new URL(long).pathname, "/runs/new?team=@local/show", "/teams", "/teams/@local/show", `/runs/new?like=${run.split("/").pop()}`, `/compare?id=${run.split("/").pop()}&id=${long.split("/").pop()}`, "/usage?days=7", "/plans", "/signals", "/projects", "/tokens",
  "/usage", new URL(run).pathname + "/logs/orchestrator", new URL(run).pathname + "/handoffs/quality/mend", new URL(run).pathname + "/files"];
await look({ browser, state, base, paths, as: { [new URL(long).pathname]: "run-cancelled" } });
await browser.close();
});
