// A person at mission control: sees who needs them and what agents say, and answers, steers and cancels without leaving the page.
// Prints what it does; the last line is ALL DONE.
import assert from "node:assert/strict";
import { chromium, look, person } from "./pages.mjs";

const [, , link] = process.argv;
const base = new URL(link).origin;
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const context = await browser.newContext({ permissions: ["notifications"] });
const page = await context.newPage();
page.setDefaultTimeout(20_000);
const problems = [];
page.on("pageerror", (error) => problems.push(error.message));
page.on("console", (message) => { if (message.text().includes("Content Security Policy")) problems.push(message.text()); });
const tell = (line) => new Promise((done) => { process.stdin.once("data", done); console.log(line); });

await person(page, async () => {
await page.goto(link);
await page.waitForURL(base + "/");
await page.evaluate(() => { window.neverReloaded = true; });
const card = (column, title) => page.locator(`#${column} .card`, { hasText: title });

console.log("what does agent X do now?");
await card("working", "Long work").locator(".words", { hasText: "reads the first file" }).waitFor();
await tell("SAY counts the rows");
await card("working", "Long work").locator(".words", { hasText: "counts the rows" }).waitFor();

console.log("what needs me?");
await tell("START A decision");
await card("needs", "A decision").waitFor();
await card("needs", "A decision").getByText("approval asks for a decision").waitFor();
await page.waitForFunction(() => document.title.startsWith("(1) "));
assert.equal((await page.locator("#needed").textContent()).trim(), "1");
assert.match(await page.locator("link[rel=icon]").getAttribute("href"), /alert/);

console.log("what did today cost, and what is done?");
await page.locator("#today").getByText("cost").waitFor();
await card("done", "Short work").waitFor();

console.log("an answer in place");
await card("needs", "A decision").getByText("Answer").click();
await card("needs", "A decision").getByLabel("What you want to say").fill("Well done.");
await tell("SAY writes the report");
await card("working", "Long work").locator(".words", { hasText: "writes the report" }).waitFor();
assert.equal(await card("needs", "A decision").getByLabel("What you want to say").inputValue(), "Well done.", "what is typed stays");
await card("needs", "A decision").getByRole("button", { name: "Approve" }).click();
await page.waitForURL(base + "/");
await card("done", "A decision").waitFor();
await page.waitForFunction(() => !document.title.startsWith("("));

console.log("guidance in place");
await card("working", "Long work").getByText("Steer or cancel").click();
await card("working", "Long work").getByLabel("Message to the agents").fill("Only the rows of today.");
await card("working", "Long work").getByRole("button", { name: "Send" }).click();
await page.waitForURL(base + "/");

console.log("by the keyboard");
await page.keyboard.press("Control+k");
await page.keyboard.type("long wo");
await page.locator("dialog li", { hasText: "Long work" }).waitFor();
await page.keyboard.press("ArrowDown");
await page.keyboard.press("Enter");
await page.waitForURL(/\/runs\/[0-9a-f-]{36}$/);
await page.getByText("Only the rows of today.", { exact: true }).waitFor();
await page.keyboard.press("Control+k");
await page.keyboard.type("usage");
await page.keyboard.press("Enter");
await page.waitForURL(base + "/usage");
await page.keyboard.press("/");
await page.waitForURL(/\/runs/);
assert.equal(await page.evaluate(() => document.activeElement.id), "q");
await page.keyboard.type("long");
await page.keyboard.press("Enter");
await page.locator("#runs tbody tr", { hasText: "Long work" }).waitFor();

console.log("filters");
await page.goto(base + "/");
await page.getByLabel("Team").selectOption("@local/long");
await page.getByRole("button", { name: "Show" }).click();
await card("working", "Long work").waitFor();
assert.equal(await card("done", "Short work").count(), 0);
await page.getByRole("link", { name: "As a table" }).click();
await page.waitForURL(base + "/runs?team=%40local%2Flong");

console.log("without script");
const state = await context.storageState();
const plain = await browser.newContext({ storageState: state, javaScriptEnabled: false });
const still = await plain.newPage();
await still.goto(base + "/");
await still.locator("#working .card", { hasText: "Long work" }).getByText("Steer or cancel").click();
await still.getByRole("link", { name: "On the page of the run" }).click();
await still.getByLabel("Message to the agents").waitFor();
await plain.close();

console.log("accessible, and fit for every screen");
await tell("START Another decision");
await page.goto(base + "/");
await card("needs", "Another decision").waitFor();
await look({ browser, state, base, paths: ["/", "/runs"], as: { "/": "mission", "/runs": "mission-table" } });

console.log("cancel in place");
await page.goto(base + "/");
await card("working", "Long work").getByText("Steer or cancel").click();
await card("working", "Long work").getByRole("button", { name: "Cancel the run" }).click();
await card("done", "Long work").locator(".badge.cancelled").waitFor();
assert.deepEqual(problems, [], "no script failed, and nothing that the policy forbids was tried");
await browser.close();
});
