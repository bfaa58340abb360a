// Editor of a draft: problems by line while a person types, fields and values of the schema, saving over the version that was read.
import { acceptCompletion, autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, defineLanguageFacet, HighlightStyle, Language, LanguageSupport, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { parser } from "@lezer/markdown";
import { offersAt } from "./complete.js";

// The package for Markdown would bring HTML, CSS and JavaScript along.
const markdown = () => new LanguageSupport(new Language(defineLanguageFacet(), parser, [], "markdown"));
const form = document.getElementById("edit"), field = document.getElementById("text");
if (form && field) edit();

function edit() {
  const { draft, file, line, names, edit: mayEdit } = form.dataset;
  const api = `/api/v1/drafts/${draft}`, fileApi = `${api}/file?path=${encodeURIComponent(file)}`;
  const told = document.getElementById("saved");
  const team = { ...JSON.parse(names), roles: [...document.querySelectorAll("nav.tree a[data-file]")].map((link) => link.dataset.file.match(/^roles\/(.+)\.md$/)?.[1]).filter(Boolean) };
  let version = form.dataset.version, saved = field.defaultValue.replaceAll("\r\n", "\n"), schema = null;
  // A text that met another version is not saved.
  const isConflict = field.value !== "" && form.closest("section").querySelector("[role=alert]");
  if (isConflict) saved = null;
  if (file === "team.yml") fetch("/api/v1/teams/schema").then((response) => (response.ok ? response.json() : null)).then((found) => { schema = found; }).catch(() => {});

  const colours = HighlightStyle.define([
    { tag: [tags.propertyName, tags.heading], color: "var(--syn-k)" }, { tag: [tags.string, tags.content], color: "var(--fg)" },
    { tag: [tags.number, tags.bool, tags.null, tags.link, tags.url], color: "var(--syn-n)" }, { tag: [tags.comment, tags.meta], color: "var(--quiet)", fontStyle: "italic" },
    { tag: [tags.special(tags.string), tags.monospace], color: "var(--syn-s)" }, { tag: tags.strong, fontWeight: "bold" }, { tag: tags.emphasis, fontStyle: "italic" },
  ]);
  const look = EditorView.theme({
    "&": { color: "var(--fg)", backgroundColor: "var(--bg)", fontSize: "13px", height: "min(70vh, 720px)" },
    "&.cm-focused": { outline: "3px solid var(--accent)", outlineOffset: "-1px" },
    ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5" }, ".cm-content": { caretColor: "var(--fg)" },
    ".cm-cursor": { borderLeftColor: "var(--fg)" }, ".cm-gutters": { backgroundColor: "var(--card)", color: "var(--quiet)", borderRightColor: "var(--line)" },
    ".cm-activeLine": { backgroundColor: "transparent", boxShadow: "inset 0 0 0 1px var(--line)" }, "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--busy-bg) !important" },
    ".cm-tooltip, .cm-panels": { backgroundColor: "var(--raised)", color: "var(--fg)", border: "1px solid var(--quiet)", fontFamily: "system-ui, sans-serif" },
    ".cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
    ".cm-completionDetail": { color: "inherit", opacity: ".8", fontStyle: "normal", marginLeft: "1em" }, ".cm-diagnostic": { padding: "4px 10px" },
    ".cm-textfield, .cm-button": { background: "var(--bg)", color: "var(--fg)", border: "1px solid var(--quiet)", font: "inherit", minHeight: "30px" },
  }, { dark: matchMedia("(prefers-color-scheme: dark)").matches });

  const offer = (context) => {
    if (!schema) return null;
    const found = offersAt(context.state.doc.toString(), context.pos, schema, team);
    if (!found || (!context.explicit && found.from === context.pos && context.state.sliceDoc(context.pos - 1, context.pos) !== " ")) return null;
    return { ...found, validFor: /^[\w@/.-]*$/ };
  };
  const isYaml = /\.ya?ml$/.test(file), isMarkdown = file.endsWith(".md");
  const host = document.createElement("div");
  host.className = "editor";
  // Styles of the editor are made by its script; in a shadow tree they need no inline style, which the policy of the pages forbids.
  const root = host.attachShadow({ mode: "open" });
  const view = new EditorView({
    root, parent: root,
    state: EditorState.create({
      doc: field.value.replaceAll("\r\n", "\n"),
      extensions: [
        lineNumbers(), history(), drawSelection(), indentOnInput(), indentUnit.of("  "), bracketMatching(), closeBrackets(), highlightActiveLine(), highlightSelectionMatches(), search({ top: true }), lintGutter(),
        isYaml ? yaml() : isMarkdown ? markdown() : [], isMarkdown ? EditorView.lineWrapping : [], file === "team.yml" ? autocompletion({ override: [offer] }) : [],
        syntaxHighlighting(colours), look, EditorState.readOnly.of(!mayEdit), EditorView.contentAttributes.of({ "aria-label": `Text of ${file}`, tabindex: "0" }),
        keymap.of([{ key: "Tab", run: acceptCompletion }, ...closeBracketsKeymap, ...completionKeymap, ...searchKeymap, ...historyKeymap, ...lintKeymap, ...defaultKeymap]),
        EditorView.updateListener.of((update) => { if (update.docChanged) { field.value = text(); tell(); soon(); } }),
      ],
    }),
  });
  field.hidden = true;
  field.after(host);
  const text = () => view.state.doc.toString();
  const isChanged = () => text() !== saved;
  const tell = () => { if (told) told.textContent = isChanged() ? "not saved" : ""; };
  const goTo = (number) => {
    const at = view.state.doc.line(Math.min(Math.max(1, number), view.state.doc.lines));
    view.dispatch({ selection: { anchor: at.from }, effects: EditorView.scrollIntoView(at.from, { y: "center" }) });
    view.focus();
  };
  if (line) goTo(Number(line));

  // Problems by line, for what stands in the editor.
  let timer = 0, asked = 0;
  const soon = () => { clearTimeout(timer); timer = setTimeout(validate, 120); };
  async function validate() {
    const now = ++asked;
    try {
      const response = await fetch(`${api}/validate`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ files: { [file]: text() } }) });
      if (!response.ok || now !== asked) return;
      const found = await response.json();
      if (now === asked) show(found);
    } catch { /* The next change asks again. */ }
  }
  function show({ problems, graph }) {
    const doc = view.state.doc;
    const own = problems.filter((problem) => problem.file === file).map((problem) => {
      const at = doc.line(Math.min(Math.max(1, problem.line), doc.lines));
      const from = Math.min(at.from + Math.max(0, problem.column - 1), at.to);
      return { from, to: Math.max(from, at.to), severity: problem.severity, message: `${problem.message}\n${problem.help}` };
    });
    view.dispatch(setDiagnostics(view.state, own));
    const list = Object.assign(document.createElement("ul"), { className: "plain" });
    for (const problem of problems) {
      const item = document.createElement("li"), badge = document.createElement("span"), link = document.createElement("a"), help = document.createElement("span");
      [badge.className, badge.textContent] = [`badge ${problem.severity}`, problem.severity];
      [link.href, link.textContent, help.className, help.textContent] = [`/studio/${draft}?file=${problem.file}&line=${problem.line}`, `${problem.file}:${problem.line}`, "quiet", problem.help];
      Object.assign(link.dataset, { file: problem.file, line: problem.line });
      item.append(badge, " ", link, ` ${problem.message} `, help);
      list.append(item);
    }
    const none = Object.assign(document.createElement("p"), { textContent: "no problems" });
    document.getElementById("problems").replaceChildren(problems.length ? list : none);
    const picture = document.getElementById("graph");
    // The picture of the last text without errors stays.
    if (picture && graph) picture.innerHTML = graph;
    if (picture) picture.classList.toggle("stale", !graph && Boolean(picture.querySelector("svg")));
    const wrong = new Set(problems.filter((problem) => problem.severity === "error").map((problem) => problem.file));
    document.querySelectorAll("nav.tree a[data-file]").forEach((entry) => {
      entry.querySelector(".fg-red")?.remove();
      if (wrong.has(entry.dataset.file)) entry.insertAdjacentHTML("beforeend", ` <span class="fg-red">✗<span class="hidden"> has errors</span></span>`);
    });
  }
  validate();

  // Saving over the version that was read. Another version is shown, and nothing is overwritten without a click.
  async function save() {
    if (!mayEdit) return;
    const written = text();
    told.textContent = "saving …";
    try {
      const response = await fetch(fileApi, { method: "PUT", headers: { "content-type": "application/json" }, body: JSON.stringify({ text: written, version: version || null }) });
      if (response.ok) {
        version = (await response.json()).version;
        document.getElementById("version").value = version;
        saved = written;
        document.getElementById("conflict")?.remove();
        told.textContent = isChanged() ? "not saved" : "saved";
        preview();
      } else if (response.status === 409) await conflict((await response.json()).detail);
      else if (response.status === 401) told.textContent = "not saved: you are signed out. Sign in in another tab, then save again.";
      else told.textContent = `not saved: ${(await response.json()).detail}`;
    } catch { told.textContent = "not saved: the server does not answer"; }
  }
  async function preview() {
    const place = document.getElementById("preview");
    if (!place) return;
    const response = await fetch(location.href).catch(() => null);
    const fresh = response?.ok && new DOMParser().parseFromString(await response.text(), "text/html").getElementById("preview");
    if (fresh) place.replaceChildren(...fresh.childNodes);
  }
  async function conflict(detail) {
    const response = await fetch(fileApi);
    const other = response.ok ? await response.json() : null;
    document.getElementById("conflict")?.remove();
    const box = Object.assign(document.createElement("div"), { id: "conflict", className: "warning" });
    box.setAttribute("role", "alert");
    box.append(Object.assign(document.createElement("p"), { textContent: `${detail}. Your text is in the editor and not saved.` }));
    const button = (label, act) => {
      const made = Object.assign(document.createElement("button"), { type: "button", textContent: label });
      made.addEventListener("click", () => { box.remove(); act(); });
      return made;
    };
    const actions = Object.assign(document.createElement("div"), { className: "actions" });
    if (other) {
      const shown = Object.assign(document.createElement("pre"), { className: "text", textContent: other.text ?? "", tabIndex: 0 });
      const details = Object.assign(document.createElement("details"), { open: true });
      details.append(Object.assign(document.createElement("summary"), { textContent: "The text that was saved" }), shown);
      box.append(details);
      actions.append(
        button("Replace it by mine", () => { version = other.version; save(); }),
        button("Take the saved one", () => {
          [version, saved] = [other.version, other.text ?? ""];
          document.getElementById("version").value = version;
          view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: saved } });
          tell();
        }),
      );
    } else actions.append(button("Create it again with my text", () => { version = ""; save(); }));
    box.append(actions);
    form.before(box);
    told.textContent = "not saved";
  }
  form.addEventListener("submit", (submit) => { submit.preventDefault(); save(); });
  document.addEventListener("keydown", (key) => {
    if ((key.ctrlKey || key.metaKey) && key.key.toLowerCase() === "s") { key.preventDefault(); save(); }
  });
  addEventListener("beforeunload", (leave) => { if (mayEdit && isChanged()) leave.preventDefault(); });
  // A problem of this file is gone to without a new page, so that nothing that is written is lost.
  document.addEventListener("click", (click) => {
    const link = click.target.closest?.("#problems a[data-file]");
    if (!link || link.dataset.file !== file || click.ctrlKey || click.metaKey || click.shiftKey || click.button) return;
    click.preventDefault();
    goTo(Number(link.dataset.line));
  });
}
