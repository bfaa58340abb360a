// A new user who has five questions, and finds each answer by what is on the pages: links and tabs, no address is typed in.
// Then a person without a mouse. Prints what it does; the last line is ALL DONE.
import assert from "node:assert/strict";
import { chromium, look, person } from "./pages.mjs";

const [, , link, given] = process.argv;
const runs = JSON.parse(given);
const base = new URL(link).origin;
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const context = await browser.newContext();
const page = await context.newPage();
page.setDefaultTimeout(20_000);
const problems = [];
page.on("pageerror", (error) => problems.push(error.message));
page.on("console", (message) => { if (message.text().includes("Content Security Policy")) problems.push(message.text()); });
await page.goto(link);
await page.waitForURL(base + "/");
const follow = (name) => page.getByRole("link", { name, exact: true }).first().click();
const start = () => page.locator(".brand").click();

await person(page, async () => {
console.log("Why did a run fail?");
await page.getByText("commands fail: lint").waitFor();
await follow("A strict build");
await page.getByText("A person is needed at quality.").waitFor();
await page.locator("[role=alert]", { hasText: "commands fail: lint" }).getByRole("link", { name: "quality" }).click();
await page.locator("#panel", { hasText: "tabs in line 7 of main.c" }).waitFor();

console.log("What did the developer agent change in its second round?");
await start();
await follow("A polite greeting");
await follow("Changes");
await follow("developer, activation 2");
const second = page.getByRole("heading", { name: "developer, activation 2" });
const patch = second.locator("xpath=following-sibling::div[1]");
assert.match(await patch.textContent(), /\+ {2}echo "usage: greet\.sh \[--polite\] NAME" >&2/);
assert.doesNotMatch(await patch.textContent(), /Good day, Ana/, "nothing of the first round");

console.log("Which phase costs most?");
await start();
await follow("A polite greeting");
await follow("Cost");
await page.getByText("developer costs most").waitFor();
assert.equal(await page.locator("main table").first().locator("tbody tr").first().locator("td").first().textContent(), "developer");

console.log("Who is being waited for?");
await start();
await page.locator("#needs .card", { hasText: "The quarterly report" }).getByText("of ann").waitFor();
await follow("The quarterly report");
await page.getByText("approval waits for a review by ann.").waitFor();

console.log("What did the model answer before the gate sent the work back?");
await start();
await follow("A polite greeting");
await follow("Timeline");
await page.locator("#steps li", { hasText: "tester: ROUTE to developer" }).first().waitFor();
await follow("Transcripts");
await page.locator("#transcripts tr", { hasText: "developer" }).filter({ hasText: "sent back by tester" }).getByRole("link").click();
await page.getByText("takes --polite, test.sh has three new checks").waitFor();

console.log("A document, a table and a text are shown");
await start();
await follow("The quarterly report");
await follow("Artifacts");
const frame = page.locator("iframe[title='The document report.pdf']");
await frame.scrollIntoViewIfNeeded();
const document = await page.request.get(new URL(await frame.getAttribute("src"), base).href);
assert.equal(document.headers()["content-type"], "application/pdf");
assert.match(document.headers()["content-security-policy"], /script-src 'none'/);
assert.equal((await page.request.get(base + `/runs/${runs.waiting}/document?path=notes.md`)).status(), 404);
await page.locator("td", { hasText: "=1+1" }).waitFor();
await page.locator(".prose em", { hasText: "one" }).waitFor();

console.log("Everything without a mouse");
const press = async (locator, key = "Enter") => { await locator.focus(); await page.keyboard.press(key); };
const type = async (locator, text) => { await locator.focus(); await page.keyboard.type(text); };
await page.goto(base + "/");
await press(page.getByRole("link", { name: "Tokens" }));
await type(page.getByLabel("Label"), "for the build");
await page.getByLabel("Scope").focus();
await page.keyboard.type("run");
await press(page.getByRole("button", { name: "Create token" }));
const token = (await page.locator("#token").textContent()).trim();
const may = async (method, path, body) => (await fetch(base + "/api/v1" + path, { method, body, headers: { authorization: `Bearer ${token}`, "content-type": "application/json" } })).status;
assert.equal(await may("GET", "/runs"), 200);
assert.equal(await may("GET", "/tokens"), 403, "the scope is `run`");
await page.goto(base + "/tokens");
assert.equal(await page.getByText(token).count(), 0, "a token is shown once");
await press(page.getByRole("button", { name: "Revoke for the build" }));
await page.getByText("No tokens").waitFor();
assert.equal(await may("GET", "/runs"), 401);

await press(page.getByRole("link", { name: "Projects" }));
await press(page.getByRole("link", { name: "Plans of handbook" }));
await press(page.getByRole("link", { name: "search", exact: true }));
await page.getByRole("heading", { name: "Wave 2" }).waitFor();
await page.getByText("Query syntax").waitFor();
await press(page.locator("main").getByRole("link", { name: "Signals" }));
await page.getByText("implement_finished").waitFor();
await press(page.getByRole("link", { name: "pending", exact: true }));
await page.locator("nav.filters [aria-current]", { hasText: "pending" }).waitFor();
assert.equal(await page.locator("tbody tr").count(), 2);
await press(page.getByRole("link", { name: "failed", exact: true }));
await page.getByText("No signal fits.").waitFor();

await press(page.getByRole("link", { name: "Evaluations" }));
await press(page.getByRole("link", { name: "answers", exact: true }));
await page.getByText("steady is better than hasty").waitFor();
await press(page.getByText("12 trials", { exact: true }), " ");
await press(page.getByRole("link", { name: "Trial 2", exact: true }));
await page.getByRole("heading", { name: "answers: steady, first, repeat 1" }).waitFor();
await page.locator("#summary .badge.completed").first().waitFor();

// What is looked at now does not change between runs of this test: before the review is answered.
const state = await context.storageState();
const path = (id, tab = "") => `/runs/${id}${tab}`;
const paths = ["/", path(runs.coded), path(runs.coded, "?phase=tester"), path(runs.coded, "/timeline"), path(runs.coded, "/transcripts"), path(runs.coded, "/transcripts/developer.1.jsonl"),
  path(runs.coded, "/changes"), path(runs.coded, "/changes?of=developer.2"), path(runs.coded, "/cost"), path(runs.waiting), path(runs.waiting, "/artifacts"), path(runs.waiting, "/files?path=report.pdf"), path(runs.failed),
  "/usage", "/teams/@cliq/code", `/plans?project=${runs.project}`, `/plans/${runs.project}/search`, `/signals?project=${runs.project}`, "/projects", "/reviews", "/evaluations", `/evaluations/${runs.evaluation}`];
await press(page.getByRole("link", { name: "Reviews" }));
await press(page.locator("main").getByRole("link").first());
await page.getByRole("button", { name: "Approve" }).waitFor();
const review = new URL(page.url()).pathname;
const named = { "/": "runs of models", "/usage": "usage of models", "/projects": "projects with one", "/reviews": "reviews with one", [review]: "review" };
for (const [id, name] of [[runs.coded, "coded"], [runs.waiting, "waiting"], [runs.failed, "failed"]]) for (const at of paths) if (at.includes(id)) named[at] = at.replace(`/runs/${id}`, name).replace(/[^a-z0-9]+/gi, "-");
for (const at of Object.keys(named)) named[at] = named[at].replaceAll(" ", "-");
await look({ browser, state, base, paths: [...paths, review], as: named });

await page.goto(base + path(runs.waiting));
await press(page.getByRole("button", { name: "Approve" }));
await page.getByText("approved").first().waitFor();
await page.goto(base + path(runs.waiting));
await page.locator("#summary .badge.completed").first().waitFor();
await page.goto(base + "/projects");
await press(page.getByRole("button", { name: "Forget handbook" }));
await page.getByText("No projects").waitFor();
assert.deepEqual(problems, [], "no script failed, and nothing that the policy forbids was tried");
await browser.close();
});
