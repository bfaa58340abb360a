// A person at the pages of triggers and of the audit log, in a real Chromium.
import { createInterface } from "node:readline";
import assert from "node:assert/strict";
import { chromium, look, person } from "../server/pages.mjs";

const [, , link] = process.argv;
const base = new URL(link).origin;
const replies = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const tell = async (what) => { console.log(what); await replies.next(); };

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const context = await browser.newContext();
const page = await context.newPage();
const problems = [];
page.on("pageerror", (error) => problems.push(error.message));

await person(page, async () => {
await page.goto(link);
await page.waitForURL(base + "/");
console.log("triggers are listed with their state");
await page.getByRole("link", { name: "Triggers" }).click();
await page.getByRole("row", { name: /nightly.*valid.*@local\/quick.*Jan 1, 20\d\d, 2:30\s?AM Europe\/Berlin/ }).waitFor();
await page.getByRole("row", { name: /unset.*error/ }).waitFor();
console.log("the history says why, and changes by itself");
await page.getByRole("link", { name: "issues" }).click();
await page.getByText("is false").first().waitFor();
await page.getByRole("link", { name: /^run / }).first().waitFor();
await tell("DELIVER");
await page.getByText("delivery d3").waitFor();
console.log("a payload shows what it would start");
const payload = { action: "opened", label: { name: "cliq" }, issue: { number: 9, title: "A <i>test</i>", body: "Do it." }, repository: { full_name: "octo/repo" } };
await page.getByLabel("Payload, JSON").fill(JSON.stringify(payload));
await page.getByRole("button", { name: "Test" }).click();
await page.getByText("A run would start").waitFor();
await page.getByText("A <i>test</i> (#9)").waitFor();
await page.getByLabel("Payload, JSON").fill("{");
await page.getByRole("button", { name: "Test" }).click();
await page.getByText("the payload is not JSON").waitFor();
await page.getByLabel("Payload, JSON").fill(JSON.stringify({ ...payload, label: { name: "bug" } }));
await page.getByRole("button", { name: "Test" }).click();
await page.getByText("No run would start").waitFor();
console.log("a trigger is paused and resumed");
await page.goto(base + "/triggers/nightly");
await page.getByRole("button", { name: "Pause" }).click();
await page.locator(".badge.paused").waitFor();
await page.getByRole("button", { name: "Resume" }).click();
await page.locator(".badge.valid").waitFor();
console.log("actions are on record");
await page.getByRole("link", { name: "Audit log" }).click();
await page.getByText("POST /triggers/{name}/pause").waitFor();
await page.getByLabel("Actor").fill("nobody");
await page.getByRole("button", { name: "Filter" }).click();
await page.getByText("No actions are recorded.").waitFor();
assert.deepEqual(problems, []);
const state = await context.storageState();
const paths = ["/triggers", "/triggers/issues", "/triggers/nightly", "/audit"];
await look({ browser, state, base, paths });
});
