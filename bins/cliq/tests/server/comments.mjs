// A reviewer at the changes of a review: comments two lines, sends them, and sees in the next round what became of them. By the mouse alone, by the
// keyboard alone, and without script. Prints what it does; the last line is ALL DONE.
import assert from "node:assert/strict";
import { chromium, look, person } from "./pages.mjs";

const [, , link] = process.argv;
const base = new URL(link).origin;
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const context = await browser.newContext();
const page = await context.newPage();
page.setDefaultTimeout(20_000);
const problems = [];
page.on("pageerror", (error) => problems.push(error.message));
page.on("console", (message) => { if (message.text().includes("Content Security Policy")) problems.push(message.text()); });
const tell = (line) => new Promise((done) => { process.stdin.once("data", done); console.log(line); });

/** Waits for the review of a run in a round, and returns its address. */
async function review(title, round) {
  await page.goto(base + "/reviews");
  for (;;) {
    const list = await (await page.request.get(base + "/api/v1/reviews?pending=true")).json();
    const found = list.reviews.find((review) => review.title === title && review.iteration === round);
    if (found) return `/reviews/${found.id}`;
    await page.waitForTimeout(100);
  }
}
const number = (on, words) => on.locator("a[data-comment]").and(on.getByLabel(words, { exact: true }));

/** The second round: both comments with their lines and answers. */
async function secondRound(on) {
  const earlier = on.locator("#earlier");
  await earlier.getByText("changed, now line 4").waitFor();
  await earlier.getByText("Uses a template now.").waitFor();
  await earlier.getByText("the line is as it was, now line 3").waitFor();
  await earlier.getByText("The name is right:").waitFor();
  const beside = on.locator("tr", { hasText: "const greeting" }).locator("+ tr.note-row");
  await beside.getByText("A template is shorter.").waitFor();
}

await person(page, async () => {
await page.goto(link);
await page.waitForURL(base + "/");

console.log("by the mouse alone");
await tell("START By the mouse");
await page.goto(base + await review("By the mouse", 1));
await page.locator(".diff .k", { hasText: "function" }).first().waitFor();
await number(page, "Comment on line 3").click();
await page.getByLabel("Comment on line 3", { exact: true }).and(page.locator("textarea")).fill("A template is shorter.");
await page.getByRole("button", { name: "Comment", exact: true }).click();
await page.locator(".note-row", { hasText: "A template is shorter." }).waitFor();
await number(page, "Comment on line 2").click();
await page.getByRole("link", { name: "Cancel" }).click();
assert.equal(await page.locator("#comment").count(), 0);
await number(page, "Comment on line 2").click();
await page.locator("#comment-text").fill("Is the name right?");
await page.getByRole("button", { name: "Comment", exact: true }).click();
await page.locator(".note-row", { hasText: "Is the name right?" }).waitFor();
await number(page, "Comment on line 4").click();
await page.locator("#comment-text").fill("By mistake.");
await page.getByRole("button", { name: "Comment", exact: true }).click();
await page.locator(".note-row", { hasText: "By mistake." }).getByRole("button", { name: "Withdraw" }).click();
await page.locator(".note-row", { hasText: "By mistake." }).waitFor({ state: "detached" });
const state = await context.storageState();
const first = new URL(page.url()).pathname;
const changes = (await page.request.get(`${base}/api/v1${first}`).then((response) => response.json())).run_id;
await look({ browser, state, base, paths: [first, `${first}?view=split`], as: { [first]: "review-comments", [`${first}?view=split`]: "review-comments-split" } });
await page.getByRole("button", { name: "Request changes with 2 comments" }).click();
await page.goto(base + await review("By the mouse", 2));
await secondRound(page);
const second = new URL(page.url()).pathname;
await look({ browser, state, base, paths: [second], as: { [second]: "review-answered" } });
await page.getByRole("button", { name: "Approve" }).click();
await page.getByText("This review is over: approved").waitFor();

console.log("by the keyboard alone");
await tell("START By the keyboard");
await page.goto(base + await review("By the keyboard", 1));
const press = async (...keys) => { for (const key of keys) await page.keyboard.press(key); };
const focused = () => page.evaluate(() => document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent.trim());
const tabTo = async (words) => {
  for (let n = 0; n < 200; n++) {
    if ((await focused()).startsWith(words)) return;
    await press("Tab");
  }
  throw new Error(`Tab does not reach ${words}, and stands at ${await focused()}`);
};
await tabTo("Comment on line 1");
for (let n = 0; n < 20 && await focused() !== "Comment on line 3"; n++) await press("ArrowDown");
await press("Enter");
await page.locator("#comment-text:focus").waitFor();
await press("Escape");
assert.equal(await focused(), "Comment on line 3", "Escape leads back to the line");
await press("Enter");
await page.locator("#comment-text:focus").waitFor();
await page.keyboard.type("A template is shorter.");
await tabTo("Comment");
await press("Enter");
await page.locator(".note-row", { hasText: "A template is shorter." }).waitFor();
// After a comment, on from its line.
await page.waitForFunction(() => document.activeElement.getAttribute("aria-label") === "Comment on line 3");
for (let n = 0; n < 20 && await focused() !== "Comment on line 2"; n++) await press("ArrowUp");
await press("Enter");
await page.locator("#comment-text:focus").waitFor();
await page.keyboard.type("Is the name right?");
await tabTo("Comment");
await press("Enter");
await page.locator(".note-row", { hasText: "Is the name right?" }).waitFor();
await tabTo("Request changes with 2 comments");
await press("Enter");
await page.getByText("This review is over").waitFor();
await page.goto(base + await review("By the keyboard", 2));
await secondRound(page);
await tabTo("Approve");
await press("Enter");
await page.getByText("This review is over: approved").waitFor();

console.log("without script, from the changes of the run");
await tell("START Without script");
const there = await review("Without script", 1);
const run = (await page.request.get(`${base}/api/v1${there}`).then((response) => response.json())).run_id;
const plain = await browser.newContext({ storageState: state, javaScriptEnabled: false });
const still = await plain.newPage();
const runs = (await page.request.get(`${base}/api/v1/runs?q=Without`).then((response) => response.json())).runs;
await still.goto(`${base}/runs/${runs[0].id}/changes`);
await number(still, "Comment on line 3").click();
await still.locator("#comment-text").fill("A template is shorter.");
await still.getByRole("button", { name: "Comment", exact: true }).click();
await still.locator(".note-row", { hasText: "A template is shorter." }).waitFor();
await number(still, "Comment on line 2").click();
await still.locator("#comment-text").fill("Is the name right?");
await still.getByRole("button", { name: "Comment", exact: true }).click();
await still.getByRole("button", { name: "Request changes with 2 comments" }).click();
await still.goto(base + await review("Without script", 2));
await secondRound(still);
await still.getByRole("link", { name: "Side by side" }).click();
await still.locator("table.diff.split").first().waitFor();
await still.getByRole("button", { name: "Approve" }).click();
await still.getByText("This review is over: approved").waitFor();
await plain.close();

console.log("guidance for agents at work");
await tell("START Still at work");
await page.goto(base + "/runs?q=Still");
await page.locator("#runs tbody tr", { hasText: "Still at work" }).getByRole("link").first().click();
// The run is listed before its agent has written the file.
const atwork = (await page.request.get(`${base}/api/v1/runs?q=Still`).then((response) => response.json())).runs[0].id;
const changed = () => page.request.get(`${base}/api/v1/runs/${atwork}/changes`).then((response) => response.text());
while (!(await changed()).includes("notes.md")) await page.waitForTimeout(200);
await page.getByRole("link", { name: "Changes", exact: true }).click();
await number(page, "Comment on line 1").click();
await page.locator("#comment-text").fill("Name the author too.");
await page.getByRole("button", { name: "Send to the agents" }).click();
await page.waitForURL(/\/runs\/[0-9a-f-]{36}/);
await page.getByText("notes.md, line 1").waitFor();
await page.getByText("Name the author too.").waitFor();

console.log("a change of many files");
await tell("START Many files");
await page.goto(base + "/runs?q=Many");
await page.locator("#runs tbody tr", { hasText: "Many files" }).locator(".badge.completed").waitFor();
await page.locator("#runs tbody tr", { hasText: "Many files" }).getByRole("link").first().click();
await page.getByRole("link", { name: "Changes", exact: true }).click();
await page.getByText("Choose a file.").waitFor();
await page.locator("nav.tree details", { has: page.locator(":scope > summary", { hasText: "part3/" }) }).last().getByRole("link", { name: "file7.txt" }).click();
await page.locator("table.diff", { hasText: "line 1 of 37" }).waitFor();
assert.equal(await page.locator("table.diff").count(), 1);
await look({ browser, state, base, paths: [new URL(page.url()).pathname], as: { [new URL(page.url()).pathname]: "changes-many" } });

assert.deepEqual(problems, [], "no script failed, and nothing that the policy forbids was tried");
await browser.close();
});
