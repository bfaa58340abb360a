// Fields and values that the editor offers, at places of a team.yml: each text has its cursor at |.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

const [, , modules, schemaFile] = process.argv;
const { offersAt } = await import(`${modules}/complete.js`);
const { phasesOf, inputsOf } = await import(`${modules}/place.js`);
const schema = JSON.parse(readFileSync(schemaFile, "utf8"));
const names = { agents: ["claude-api", "rules"], teams: ["@cliq/code"], roles: ["writer"] };
const offered = (text) => offersAt(text.replace("|", ""), text.indexOf("|"), schema, names)?.options.map((option) => option.label) ?? [];

const head = "name: \"@local/x\"\nworkflow:\n  phases:\n    - name: writer\n      type: standard\n";
for (const [text, has, lacks] of [
  ["|", ["name", "workflow", "inputs"], ["depends_on"]],
  ["name: x\nwork|", ["workflow"], []],
  ["workflow:\n  |", ["phases", "support"], ["name"]],
  [`${head}      |`, ["depends_on", "agent", "when"], ["workflow"]],
  [`${head}      dep|`, ["depends_on"], []],
  [`${head}      type: |`, ["standard", "gate", "exec"], ["depends_on"]],
  [`${head}      agent: cl|`, ["claude-api", "rules"], ["writer"]],
  [`${head}    - name: check\n      depends_on: [|`, ["writer", "check"], ["claude-api"]],
  [`${head}    - name: check\n      depends_on: [writer, |`, ["writer"], []],
  [`${head}    - name: check\n      depends_on:\n        - |`, ["writer"], []],
  [`${head}    - {name: check, type: |`, ["gate"], ["name"]],
  [`${head}    - {name: check, |`, ["type", "depends_on"], ["workflow"]],
  [`${head}    - name: check\n      commands:\n        - {name: c, |`, ["run"], ["depends_on"]],
  [`${head}    - name: check\n      commands:\n        - name: c\n          |`, ["run"], ["depends_on"]],
  [`inputs:\n  - {name: lang, |`, ["description", "default"], ["type"]],
  [`inputs:\n  - {name: lang}\n${head}      commands:\n        - {name: c, run: "echo $(inputs.|`, ["lang"], ["name"]],
  ["# a comment |", [], ["name"]],
]) {
  const found = offered(text);
  for (const label of has) assert.ok(found.includes(label), `${text}\noffers ${found.join(", ")}, and lacks ${label}`);
  for (const label of lacks) assert.ok(!found.includes(label), `${text}\noffers ${label}`);
}
assert.deepEqual(phasesOf(`${head}    - {name: check, commands: [{name: inner, run: x}]}\nagents:\n  - name: none\n`), ["writer", "check"]);
assert.deepEqual(inputsOf("inputs:\n  - {name: a}\n  - name: b\nworkflow:\n  phases:\n    - name: c\n"), ["a", "b"]);
console.log("ALL DONE");
