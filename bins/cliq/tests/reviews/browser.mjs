// Reviewers at the page of a review, in a real Chromium. Prints what they do; the last line is ALL DONE.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import assert from "node:assert/strict";

const require = createRequire(process.env.NODE_MODULES + "/");
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const [, , firstAnn, firstBob, pictures] = process.argv;
const replies = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const ask = async (what) => { console.log(what); return (await replies.next()).value; };
const idOf = (link) => link.split("/").at(-2);

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const problems = [];
const watched = async (context) => {
  const page = await context.newPage();
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("console", (message) => { if (message.text().includes("Content Security Policy")) problems.push(message.text()); });
  return page;
};
const looks = async (context, link, name) => {
  for (const scheme of ["light", "dark"]) {
    for (const [screen, viewport] of [["desktop", { width: 1280, height: 900 }], ["phone", { width: 390, height: 844 }]]) {
      const one = await browser.newContext({ storageState: await context.storageState(), colorScheme: scheme, viewport, bypassCSP: true });
      const view = await one.newPage();
      await view.goto(link);
      await view.evaluate(() => document.querySelectorAll("details").forEach((details) => { details.open = true; }));
      await view.screenshot({ path: `${pictures}/${name}-${screen}-${scheme}.png`, fullPage: true });
      await view.addScriptTag({ content: axe });
      const { violations } = await view.evaluate(() => axe.run());
      assert.deepEqual(violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).slice(0, 3)}`), [], `${name} ${screen} ${scheme}`);
      const width = await view.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(width <= viewport.width, `${name} on a ${screen} is ${width} wide`);
      await one.close();
    }
  }
};

console.log("a reviewer sees what the review is about");
const context = await browser.newContext();
const ann = await watched(context);
await ann.goto(firstAnn);
await ann.getByRole("heading", { name: "Review of approval" }).waitFor();
for (const name of ["What is reviewed", "Checks", "Files", "Changes", "Timeline", "Decision"]) await ann.getByRole("heading", { name, exact: true }).waitFor();
await ann.locator(".prose strong", { hasText: "right" }).waitFor();
const image = ann.getByAltText("The image picture.png");
await ann.locator("summary", { hasText: "picture.png" }).first().click();
assert.equal(await image.evaluate((img) => img.naturalWidth), 1, "the image is shown");
assert.equal(await ann.locator("#changes summary", { hasText: "src/old.rs → src/new.rs" }).count(), 1);
assert.ok(await ann.locator("tr.add", { hasText: "eprintln" }).count() > 0);
await ann.getByRole("link", { name: "Side by side" }).click();
await ann.locator("table.split td.add", { hasText: "eprintln" }).first().waitFor();
await looks(context, firstAnn, "waiting");
await looks(context, firstAnn + "?view=split", "split");

console.log("without script, a request for changes");
const plain = await browser.newContext({ javaScriptEnabled: false, viewport: { width: 390, height: 844 } });
const bob = await plain.newPage();
await bob.goto(firstBob);
await bob.getByRole("button", { name: "Request changes" }).click();
await bob.getByRole("alert").getByText("requires a message").waitFor();
await bob.getByLabel("What you want to say").fill("More detail,\nplease.");
await bob.getByLabel("Who makes the changes").selectOption("writer");

console.log("another page that is open is told, without a reload");
await ann.goto(firstAnn);
await ann.getByLabel("What you want to say").fill("I am typing");
await bob.getByRole("button", { name: "Request changes" }).click();
await bob.getByText("This review is over").waitFor();
await ann.getByText("bob requested changes by writer").waitFor();
assert.equal(await ann.getByLabel("What you want to say").inputValue(), "I am typing", "what is typed stays");
await ann.locator("#decision fieldset.stack[disabled]").waitFor();
assert.ok(await ann.getByRole("button", { name: "Approve" }).isDisabled());

console.log("the next round, with a server, by keyboard alone");
const dashboard = await ask("SERVER");
const [secondAnn, secondBob] = (await ask("NEXT " + idOf(firstAnn))).split(" ");
const keys = await watched(context);
await keys.goto(secondAnn);
await keys.getByText("ROUTE to writer: More detail,").first().waitFor();
await keys.keyboard.press("Tab");
assert.equal(await keys.evaluate(() => document.activeElement.textContent), "Skip to the decision");
await keys.keyboard.press("Enter");
const focus = async (name) => {
  for (let n = 0; n < 40; n += 1) {
    await keys.keyboard.press("Tab");
    const id = await keys.evaluate(() => document.activeElement.name + ":" + document.activeElement.value);
    if (id.startsWith(name)) return;
  }
  assert.fail(`${name} is not reached by Tab`);
};
await focus("input.version");
await keys.keyboard.type("1.9");
await focus("input.sure");
await keys.keyboard.press("Space");
await focus("reason");
await keys.keyboard.type("fine by me");
await focus("verdict:approve");
await keys.keyboard.press("Enter");
await keys.getByText("has answered. The review waits for others.").waitFor();
await looks(context, secondAnn, "answered");

console.log("a person who is signed in, in another's name");
const signed = await watched(context);
await signed.goto(dashboard);
await signed.waitForURL(new URL(dashboard).origin + "/");
await signed.getByRole("link", { name: "Reviews" }).click();
await signed.getByRole("link", { name: "approval of @local/review" }).first().waitFor();
await looks(context, new URL(dashboard).origin + "/reviews", "list");
await signed.getByRole("link", { name: "approval of @local/review" }).first().click();
await signed.getByText("You answer in the name of").waitFor();
await looks(context, signed.url(), "dashboard");
await signed.getByLabel("Version (required)").fill("2.0");
await signed.getByRole("button", { name: "Approve" }).click();
await signed.getByText("This review is over").waitFor();
await looks(context, signed.url(), "over");
await signed.goto(new URL(dashboard).origin + "/");
assert.deepEqual(problems, [], "no script failed, and nothing that the policy forbids was tried");
await browser.close();
console.log("ALL DONE");
process.exit(0);
