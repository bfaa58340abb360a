// People who sign in by a provider, each in a browser of their own.
import { createInterface } from "node:readline";
import assert from "node:assert/strict";
import { chromium, person } from "./pages.mjs";

const [, , base, review, run, issuer] = process.argv;
const replies = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const tell = async (what) => { console.log(what); await replies.next(); };

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const first = await (await browser.newContext()).newPage();

/** A person in a browser of their own, at the sign-in page of the provider. */
async function begin(name) {
  const page = await (await browser.newContext()).newPage();
  await page.goto(base + "/signin");
  await page.getByRole("link", { name: "Sign in with Example ID" }).click();
  await page.locator("input[name=login]").fill(name);
  await page.locator("input[name=password]").fill("any");
  await page.getByRole("button", { name: "Sign-in" }).click();
  await page.getByRole("button", { name: "Continue" }).waitFor();
  return page;
}

async function signIn(name) {
  const page = await begin(name);
  await page.getByRole("button", { name: "Continue" }).click();
  await page.waitForURL(base + "/");
  return page;
}

await person(first, async () => {
console.log("a provider that is away");
await first.goto(base + "/signin");
await first.getByRole("link", { name: "Sign in with Example ID" }).click();
await first.getByText("The provider does not respond").waitFor();
await first.getByLabel("Token").waitFor();
await tell("PROVIDER");

console.log("a person in no group is refused");
const nobody = await begin("nobody");
await nobody.getByRole("button", { name: "Continue" }).click();
await nobody.getByText("is in no group that may sign in here").waitFor();
await nobody.goto(base + "/");
await nobody.waitForURL(base + "/signin");

console.log("groups give scopes");
const bob = await signIn("bob");
assert.equal(await bob.getByRole("link", { name: "New run" }).count(), 0, "a reader starts no runs");
assert.equal((await bob.goto(base + "/tokens")).status(), 403);
const ops = await signIn("ops");
await ops.goto(base + "/tokens");
await ops.getByLabel("Label").fill("of the team");
await ops.getByRole("button", { name: "Create token" }).click();
await ops.locator("#token").waitFor();

console.log("a sign-in counts once, and in its own browser");
let callback;
const once = await (await browser.newContext()).newPage();
once.on("request", (request) => { if (request.url().includes("/signin/oidc/callback")) callback = request.url(); });
await once.goto(base + "/signin/oidc");
await once.locator("input[name=login]").fill("ann");
await once.locator("input[name=password]").fill("any");
await once.getByRole("button", { name: "Sign-in" }).click();
await once.getByRole("button", { name: "Continue" }).click();
await once.waitForURL(base + "/");
const replayed = await once.goto(callback);
assert.equal(replayed.status(), 403);
await once.getByText("was completed before, or has expired").waitFor();
const stolen = await begin("ann");
// The redirects to the dashboard are followed by hand, so that the last address is known and not yet used.
const { action, fields } = await stolen.locator("form").first().evaluate((form) => ({ action: form.action, fields: Object.fromEntries(new FormData(form)) }));
const { request } = stolen.context();
let response = await request.post(action, { form: fields, maxRedirects: 0 });
let address = response.headers().location;
while (!address.startsWith(base)) {
  response = await request.get(new URL(address, issuer).href, { maxRedirects: 0 });
  address = response.headers().location;
}
const thief = await (await browser.newContext()).newPage();
assert.equal((await thief.goto(address)).status(), 403);
await thief.getByText("was begun in another browser").waitFor();
assert.equal((await thief.goto(base + "/signin/oidc/callback?code=x&state=y")).status(), 403);
assert.equal((await thief.goto(base + "/signin/oidc/callback")).status(), 403);
await thief.goto(base + "/");
await thief.waitForURL(base + "/signin");

console.log("reviewers are identified by their verified mail address");
const form = (page, reviewer) => page.evaluate(async ([review, reviewer]) => {
  const body = new URLSearchParams({ verdict: "approve", ...(reviewer ? { reviewer } : {}) });
  return (await fetch(`/reviews/${review}`, { method: "POST", body, redirect: "manual" })).status;
}, [review, reviewer]);
const eve = await signIn("eve");
await eve.goto(`${base}/reviews/${review}`);
await eve.getByText("You may look at this review").waitFor();
assert.equal(await form(eve, "ann"), 403, "an address that is not verified is nobody's");
assert.equal(await form(bob, "ann"), 403);
assert.equal(await form(ops, "ann"), 403, "not even an admin answers in the name of another person");
const ann = await signIn("ann");
await ann.goto(`${base}/reviews/${review}`);
await ann.getByText("You answer as ann.").waitFor();
await ann.getByRole("button", { name: "Approve" }).click();
await ann.getByText("This review is over").waitFor();

console.log("a session ends when an admin ends it, and outlives the server");
await bob.goto(base + "/");
await bob.waitForURL(base + "/");
await tell("END bob");
await bob.goto(base + "/");
await bob.waitForURL(base + "/signin");
await tell("RESTART");
await ann.goto(`${base}/runs/${run}`);
await ann.locator("#summary .badge.completed").waitFor();

console.log("sign-out ends both sessions");
await ann.getByRole("button", { name: "Sign out" }).click();
await ann.waitForURL(issuer + "/**");
await ann.getByRole("button", { name: /Yes, sign me out/i }).click();
await ann.waitForURL(base + "/signin");
await ann.goto(base + "/");
await ann.waitForURL(base + "/signin");
await ann.getByRole("link", { name: "Sign in with Example ID" }).click();
await ann.locator("input[name=login]").waitFor();

console.log("the audit log is for admins");
await ops.goto(base + "/audit");
await ops.getByText("sign in").first().waitFor();
assert.equal((await eve.goto(base + "/audit")).status(), 403);
});
