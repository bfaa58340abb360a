// Looks at pages in both themes and three widths: accessible, light, operable by keyboard, not too wide, and like the earlier pictures.
import { createRequire } from "node:module";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import assert from "node:assert/strict";

const require = createRequire(process.env.NODE_MODULES + "/");
export const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

// UPDATE_PICTURES=1 takes the pages as the new pictures.
const before = new URL("pictures/", import.meta.url);
const pictures = process.env.PICTURES;
const SIZES = { desktop: { width: 1280, height: 900 }, phone: { width: 390, height: 844 }, narrow: { width: 320, height: 700 } };
// Parts whose shape follows from how long something took, and documents, whose viewer belongs to the browser.
const MASK = ".gantt .span, .gantt .wait, .gantt .command, .gantt text, iframe.pdf { visibility: hidden !important; }";
const WIDE = 72;

/** Runs a script of a person. If it fails, the page at that moment is saved as `failed.png` and its text is printed. */
export async function person(page, script) {
  try {
    await script();
    console.log("ALL DONE");
    process.exit(0);
  } catch (error) {
    console.log(error);
    await page.screenshot({ path: `${pictures}/failed.png`, fullPage: true }).catch(() => {});
    console.log(`${page.url()}\n${await page.locator("body").innerText().catch(String)}`);
    process.exit(1);
  }
}

/** A small picture in colour, so that the fonts of another machine make little difference. */
const thumbnail = (view, picture) => view.evaluate(async ([data, wide]) => {
  const image = new Image();
  image.src = data;
  await image.decode();
  // Long pages are cut: their end repeats what is above.
  const high = Math.min(2 * wide, Math.max(1, Math.round(wide * image.height / image.width)));
  const canvas = Object.assign(document.createElement("canvas"), { width: wide, height: high });
  const context = canvas.getContext("2d");
  context.imageSmoothingQuality = "high";
  context.drawImage(image, 0, 0, wide, Math.max(1, Math.round(wide * image.height / image.width)));
  return { url: canvas.toDataURL("image/webp", 0.6), height: image.height };
}, ["data:image/png;base64," + picture.toString("base64"), WIDE]);

/** Differences of two small pictures: the mean, and that of the block that differs most. From 0 to 255. */
const difference = (view, one, other) => view.evaluate(async (urls) => {
  const load = async (url) => {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = Object.assign(document.createElement("canvas"), { width: image.width, height: image.height });
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    return { width: image.width, height: image.height, data: context.getImageData(0, 0, image.width, image.height).data };
  };
  const [a, b] = await Promise.all(urls.map(load));
  const [block, blocks, height] = [9, new Map(), Math.min(a.height, b.height)];
  for (let y = 0; y < height; y++) for (let x = 0; x < a.width; x++) {
    const key = `${Math.floor(x / block)} ${Math.floor(y / block)}`;
    const sums = blocks.get(key) ?? [0, 0, 0, 0];
    for (let c = 0; c < 3; c++) sums[c] += a.data[4 * (y * a.width + x) + c] - b.data[4 * (y * b.width + x) + c];
    sums[3]++;
    blocks.set(key, sums);
  }
  const each = [...blocks.values()].filter((sums) => sums[3] > block * block / 2).map(([r, g, b, n]) => (Math.abs(r) + Math.abs(g) + Math.abs(b)) / 3 / n);
  return { mean: each.reduce((sum, value) => sum + value, 0) / Math.max(1, each.length), most: Math.max(0, ...each), heights: [a.height, b.height] };
}, [one, other]);

async function compare(view, name, picture) {
  const file = new URL(name + ".webp", before);
  const small = await thumbnail(view, picture);
  if (process.env.UPDATE_PICTURES) {
    mkdirSync(before, { recursive: true });
    writeFileSync(file, Buffer.from(small.url.split(",")[1], "base64"));
    return;
  }
  assert.ok(existsSync(file), `${name}: there is no earlier picture; UPDATE_PICTURES=1 takes this one`);
  const { mean, most, heights } = await difference(view, small.url, "data:image/webp;base64," + readFileSync(file).toString("base64"));
  const hint = "UPDATE_PICTURES=1 takes the page as the new picture";
  assert.ok(Math.abs(heights[0] - heights[1]) <= Math.max(4, heights[1] * 0.12), `${name}: ${heights[0]} lines, before ${heights[1]}; ${hint}`);
  assert.ok(mean < 6 && most < 48, `${name} looks different: ${mean.toFixed(1)} on average, ${most.toFixed(1)} in one place, of 255; ${hint}`);
}

/** Presses Tab until the focus returns to the start. Every control must be reached, and must show its focus. */
async function operate(view, path) {
  const expected = await view.evaluate(() => {
    document.activeElement?.blur();
    const all = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")];
    const can = all.filter((element) => !element.disabled && element.tabIndex >= 0 && element.type !== "hidden" && element.checkVisibility({ visibilityProperty: true }) && !element.closest("details:not([open]) > :not(summary)"));
    can.forEach((element, n) => { element.dataset.stop = n; });
    return can.length;
  });
  const seen = new Set();
  for (let presses = 0; presses < expected + 3 && seen.size < expected; presses++) {
    await view.keyboard.press("Tab");
    const at = await view.evaluate(() => {
      const element = document.activeElement;
      const style = getComputedStyle(element);
      const drawn = element.querySelector("rect");
      const shows = (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) || (drawn && parseFloat(getComputedStyle(drawn).strokeWidth) >= 3);
      return { stop: element.dataset?.stop, shows: Boolean(shows), html: element.outerHTML.slice(0, 120) };
    });
    if (at.stop === undefined) continue;
    assert.ok(at.shows, `${path}: the focus is not visible on ${at.html}`);
    seen.add(at.stop);
  }
  if (seen.size < expected) {
    const missing = await view.evaluate((seen) => [...document.querySelectorAll("[data-stop]")].filter((element) => !seen.includes(element.dataset.stop)).map((element) => element.outerHTML.slice(0, 160)), [...seen]);
    assert.fail(`${path}: Tab does not reach ${missing.join(" and ")}`);
  }
}

const name = (path) => path.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "run").replace(/cliq-[a-z0-9]{6}/g, "project").replace(/[^a-z0-9]+/gi, "-").replace(/^-|-$/g, "") || "first";

/** Looks at each path. `as` names pages whose address has no telling name. */
export async function look({ browser, state, base, paths, as = {} }) {
  for (const scheme of ["light", "dark"]) {
    for (const [size, viewport] of Object.entries(SIZES)) {
      const context = await browser.newContext({ storageState: state, colorScheme: scheme, viewport, bypassCSP: true });
      const view = await context.newPage();
      for (const path of paths) {
        const response = await view.goto(base + path, { waitUntil: "load" });
        assert.equal(response.status(), 200, path);
        const paint = await view.evaluate(() => new Promise((done) => {
          const found = () => performance.getEntriesByName("first-contentful-paint")[0];
          if (found()) done(found().startTime); else new PerformanceObserver((list, observer) => { if (found()) { observer.disconnect(); done(found().startTime); } }).observe({ type: "paint", buffered: true });
        }));
        const weight = await view.evaluate(() =>
          ["navigation", "resource"].flatMap((type) => performance.getEntriesByType(type)).reduce((sum, entry) => sum + entry.decodedBodySize, 0));
        const file = `${as[path] ?? name(path)}-${size}-${scheme}`;
        const hasMask = await view.locator(".gantt, iframe").count() > 0;
        // Pictures take most of the time: none is made that is not compared.
        const isCompared = size !== "narrow";
        const picture = isCompared ? await view.screenshot({ path: `${pictures}/${file}.png`, fullPage: true }) : undefined;
        const hasFrame = await view.locator("iframe").count() > 0;
        await view.addScriptTag({ content: axe });
        const violations = await view.evaluate(async () => (await axe.run({ exclude: ["iframe"] }, { iframes: false })).violations.map((v) => v.id + ": " + v.nodes.map((n) => n.html.slice(0, 160)).join(" ")));
        assert.deepEqual(violations, [], `${path} ${size} ${scheme}`);
        const wide = await view.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(wide <= 1, `${path} ${size}: wider than the screen by ${wide}`);
        // The editor of the studio is loaded on its page only.
        const most = await view.locator("form#edit").count() ? 800_000 : 150_000;
        assert.ok(weight < most, `${path}: ${weight} bytes`);
        if (size === "narrow" && scheme === "light") {
          await view.setViewportSize({ width: 768, height: 1024 });
          const wide = await view.evaluate(() => document.documentElement.scrollWidth - innerWidth);
          assert.ok(wide <= 1, `${path} tablet: wider than the screen by ${wide}`);
          await view.setViewportSize(viewport);
        }
        if (isCompared) {
          if (hasMask) await view.addStyleTag({ content: MASK });
          await compare(view, file, hasMask ? await view.screenshot({ fullPage: true }) : picture);
        }
        // The viewer of a document takes the keyboard.
        if (scheme === "light" && size !== "phone" && !hasFrame) await operate(view, path);
        if (/^\/runs\/[0-9a-f-]{36}$/.test(path)) console.log(`the page of a run, ${size}, ${scheme}: ${weight} bytes, first paint after ${paint.toFixed(0)} ms`);
      }
      await context.close();
    }
  }
}
