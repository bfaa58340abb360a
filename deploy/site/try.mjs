// Tries the site in Chromium, from the files of a directory: recording, search, widths, colours, links.
import { createRequire } from "node:module";
import { createServer } from "node:http";
import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import { dirname, extname, join, relative, resolve } from "node:path";

const root = resolve(process.argv[2]);
const { chromium } = createRequire(join(root, "../package.json"))("playwright-core");
const TYPES = { ".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".json": "application/json", ".png": "image/png", ".svg": "image/svg+xml", ".woff2": "font/woff2" };
let failures = 0;
const check = (text, problems) => {
  failures += problems.length > 0;
  console.log(problems.length ? `FAILED ${text}\n  ${problems.slice(0, 20).join("\n  ")}` : `ok ${text}`);
};

const server = createServer((request, response) => {
  const path = join(root, decodeURIComponent(new URL(request.url, "http://localhost").pathname));
  const file = existsSync(path) && statSync(path).isDirectory() ? join(path, "index.html") : path;
  if (!file.startsWith(root) || !existsSync(file)) return response.writeHead(404).end();
  response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" }).end(readFileSync(file));
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const base = `http://127.0.0.1:${server.address().port}`;

const files = readdirSync(root, { recursive: true }).filter((file) => file.endsWith(".html")).sort();
const pages = files.filter((file) => !["print.html", "404.html", "toc.html"].includes(file));

// Links of the files themselves: each leads to a file, and to a heading in it.
const ids = new Map();
const idsOf = (file) => {
  if (!ids.has(file)) ids.set(file, new Set([...readFileSync(file, "utf8").matchAll(/\bid="([^"]+)"/g)].map((found) => found[1])));
  return ids.get(file);
};
const broken = [];
let links = 0;
for (const file of pages) {
  for (const [, link] of readFileSync(join(root, file), "utf8").matchAll(/\b(?:href|src|srcset)="([^"]*)"/g)) {
    if (/^([a-z]+:|\/\/)/.test(link) || link === "") continue;
    links += 1;
    const [path, heading] = link.replaceAll("&amp;", "&").split("#");
    const target = path ? resolve(root, dirname(file), decodeURIComponent(path)) : join(root, file);
    const isFile = existsSync(target) && statSync(target).isFile();
    if (!isFile || (heading && !idsOf(target).has(decodeURIComponent(heading)))) broken.push(`${file}: ${link}`);
  }
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const errors = [];
const open = async (options) => {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.on("pageerror", (error) => errors.push(`${page.url()}: ${error}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(base) && !/^(data|blob):/.test(request.url())) errors.push(`${page.url()} asks ${request.url()}`);
  });
  return page;
};

const page = await open({ viewport: { width: 1280, height: 900 } });
await page.goto(`${base}/index.html`);
await page.locator(".ap-overlay-start, .ap-play-button").first().click();
await page.waitForFunction(() => document.querySelector(".ap-term")?.textContent.includes("COMPLETED"), null, { timeout: 60000 });
check("the recording of the demo plays", []);
await page.goto(`${base}/tour.html`);
await page.keyboard.press("s");
const words = page.locator("#mdbook-searchbar, #searchbar").first();
const result = page.locator("#mdbook-searchresults a, #searchresults a").filter({ hasText: /platforms|sandbox/i });
// The index is loaded with the first press of a key: words that are typed before that find nothing.
for (let n = 0; n < 60 && !(await result.first().isVisible()); n++) {
  await words.fill("");
  await words.pressSequentially("seatbelt");
  await result.first().waitFor({ timeout: 1000 }).catch(() => {});
}
await result.first().click();
await page.waitForURL(/platforms|sandbox|seatbelt/);
check("a search finds a page", []);

const phone = await open({ viewport: { width: 390, height: 800 } });
const wide = [];
for (const file of pages) {
  await phone.goto(`${base}/${file}`);
  const width = await phone.evaluate(() => document.documentElement.scrollWidth);
  if (width > 390) wide.push(`${file}: ${width} pixels`);
}
check(`${pages.length} pages fit a phone`, wide);
check(`${links} links lead somewhere`, broken);
const dark = await open({ viewport: { width: 1280, height: 900 }, colorScheme: "dark" });
await dark.goto(`${base}/tour.html`);
const [r, g, b] = (await dark.evaluate(() => getComputedStyle(document.documentElement).backgroundColor)).match(/\d+/g).map(Number);
check("dark colours are dark", (r + g + b) / 3 < 90 ? [] : [`the background is ${r}, ${g}, ${b}`]);
check("no script fails, and nothing comes from another host", errors);
await browser.close();
server.close();
process.exit(failures ? 1 : 0);
