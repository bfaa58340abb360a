// Fields and values that are offered: those of the JSON Schema, and names of the team.
import { inputsOf, phasesOf, placeAt } from "./place.js";

/** Schemas of what a schema stands for: itself, or its alternatives. */
const alternatives = (schema) => (schema ? [schema, ...(schema.anyOf ?? []), ...(schema.oneOf ?? [])] : []);

/** Schemas at a path. */
export function schemasAt(schema, path) {
  let found = alternatives(schema);
  for (const key of path) {
    found = found.flatMap((part) => {
      const next = key === "*" ? part.items : part.properties?.[key] ?? (typeof part.additionalProperties === "object" ? part.additionalProperties : null);
      return alternatives(next);
    });
  }
  return found;
}

/** Names of the team that fit a field. */
function namesFor(key, team) {
  switch (key) {
    case "depends_on": case "route_to": case "on_conflict": return team.phases;
    case "agent": return [...team.declared, ...team.agents];
    case "team": return team.teams;
    case "role": return team.roles;
    default: return [];
  }
}

/** Programs that a team.yml declares as agents. */
const declaredAgents = (text) => {
  const part = text.match(/^agents\s*:\s*\n((?:[ ]+.*\n?|\s*\n)*)/m);
  return part ? [...part[1].matchAll(/^ {2}([\w-]+)\s*:/gm)].map((found) => found[1]) : [];
};

/**
 * What can be written at a position: `from`, and `options` with `label`, `detail`, `info` and `apply`. Returns null if there is nothing to offer.
 */
export function offersAt(text, position, schema, names) {
  const input = text.slice(0, position).match(/\$\(inputs\.([\w-]*)$/);
  if (input) return { from: position - input[1].length, options: inputsOf(text).map((label) => ({ label, detail: "input", apply: `${label})` })) };
  const place = placeAt(text, position);
  if (!place) return null;
  const team = { ...names, phases: phasesOf(text), declared: declaredAgents(text) };
  const word = place.word.match(/[\w@/.-]*$/)[0];
  const from = position - word.length;
  if (place.key !== null || place.isElement) {
    const key = place.key ?? place.path.findLast((part) => part !== "*");
    const path = place.key === null ? place.path : [...place.path, place.key];
    const schemas = schemasAt(schema, path);
    const words = schemas.flatMap((part) => [...(part.enum ?? []), ...(part.items?.enum ?? [])]);
    if (schemas.some((part) => part.type === "boolean")) words.push("true", "false");
    const options = [
      ...words.map((label) => ({ label: String(label), detail: "value" })),
      ...namesFor(key, team).map((label) => ({ label, detail: key === "agent" || key === "team" || key === "role" ? key : "phase", apply: label.startsWith("@") ? `"${label}"` : label })),
    ];
    if (options.length) return { from, options };
    // An element may be the first field of a mapping.
    if (place.key !== null) return null;
  }
  const fields = schemasAt(schema, place.path).flatMap((part) => Object.entries(part.properties ?? {}));
  const seen = new Set();
  const options = fields
    .filter(([name]) => !seen.has(name) && seen.add(name))
    .map(([label, field]) => ({ label, detail: "field", info: field.description, apply: `${label}: ` }));
  return options.length ? { from, options } : null;
}
