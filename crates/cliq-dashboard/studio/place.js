// Position of the cursor in a team.yml: the keys that lead to it, and whether a key or a value is being written.

const indentOf = (line) => line.match(/^ */)[0].length;

/** Keys of the open flow mappings and lists in the text of a line before the cursor. */
function flowOf(text) {
  const open = [];
  let start = 0, quote = "";
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (quote) { if (char === quote) quote = ""; continue; }
    if (char === "\"" || char === "'") { quote = char; continue; }
    if (char === "#" && (at === 0 || text[at - 1] === " ")) return { open: [], rest: "", isComment: true };
    if (char === "{" || char === "[") {
      const key = text.slice(start, at).match(/([\w.-]+)\s*:\s*$/);
      open.push({ key: key ? key[1] : null, isList: char === "[" });
      start = at + 1;
    } else if (char === "}" || char === "]") { open.pop(); start = at + 1; } else if (char === "," && open.length) start = at + 1;
  }
  return { open, rest: text.slice(start), isComment: false };
}

/**
 * Place of a position in a text: `path` has keys, and `*` for an element of a list or of a mapping with free keys; `key` is the key whose value
 * is written, or null if a key is written; `word` is the part of it before the cursor. Returns null in a comment.
 */
export function placeAt(text, position) {
  const before = text.slice(0, position).split("\n");
  const line = before.pop();
  let list = line.match(/^( *)((?:- +)*)(.*)$/);
  const flow = flowOf(list[3]);
  if (flow.isComment) return null;
  let indent = list[1].length + list[2].length;
  // Parents by indentation, from the line upwards.
  const path = [];
  let dashes = list[2].replaceAll(/ +/g, "").length, own = list[1].length;
  for (let n = 0; n < dashes; n++) path.unshift("*");
  let limit = dashes ? own : indent;
  const isEmpty = !line.trim();
  for (let n = before.length - 1; n >= 0 && (limit > 0 || dashes); n--) {
    const parent = before[n];
    if (!parent.trim() || parent.trimStart().startsWith("#")) continue;
    const part = parent.match(/^( *)((?:- +)*)([\w./-]+):(\s*(?:#.*)?)$/) ?? parent.match(/^( *)((?:- +)*)([\w./-]+):()/);
    const at = parent.match(/^( *)((?:- +)*)/);
    const keyAt = at[1].length + at[2].length;
    if (part && part[4] !== undefined && /:\s*(#.*)?$/.test(parent) && (keyAt < limit || (dashes && keyAt <= limit))) {
      path.unshift(part[3]);
      limit = keyAt;
      dashes = 0;
      if (at[2]) { path.unshift("*"); limit = at[1].length; dashes = 1; }
    } else if (at[2] && keyAt <= limit && at[1].length < limit) {
      // Another field of the same element.
      path.unshift("*");
      limit = at[1].length;
      dashes = 1;
    }
  }
  for (const part of flow.open) { if (part.key) path.push(part.key); if (part.isList) path.push("*"); }
  const pair = flow.rest.match(/^\s*(?:["']?([\w./ -]+?)["']?\s*:\s+)(.*)$/);
  const inList = flow.open.at(-1)?.isList;
  if (pair && !inList) return { path, key: pair[1], word: pair[2].replace(/^["']/, "") };
  const word = flow.rest.trimStart().replace(/^["']/, "");
  if (inList) return { path: path.slice(0, -1), key: path.at(-2) ?? null, word, isElement: true };
  // An element of a block list of texts, or a key.
  return { path, key: null, word, isElement: path.at(-1) === "*" && !isEmpty, indent };
}

/** Names of the phases that a team.yml declares. */
export function phasesOf(text) {
  const names = [];
  let inside = false;
  for (const line of text.split("\n")) {
    if (/^\s*(phases|support)\s*:/.test(line)) inside = true;
    else if (/^\S/.test(line) && !/^workflow\s*:/.test(line)) inside = false;
    const found = inside && line.match(/^\s*-\s+(?:\{\s*)?name\s*:\s*["']?([\w-]+)/);
    if (found) names.push(found[1]);
  }
  return names;
}

/** Names of the inputs that a team.yml declares. */
export function inputsOf(text) {
  const part = text.match(/^inputs\s*:(.*(?:\n(?:[ -].*|\s*))*)/m);
  return part ? [...part[1].matchAll(/(?:[{-]\s*)name\s*:\s*["']?([\w-]+)/g)].map((found) => found[1]) : [];
}
