// The comments of an issue, with the examples of GitHub's published description. Arguments: description, filtered description.
// Prints its port, then each request that changes something.
import { createServer } from "node:http";
import { readFileSync, writeFileSync } from "node:fs";

const [, , description, filtered] = process.argv;
const api = JSON.parse(readFileSync(description));
// The few paths that are called: Prism reads the whole description otherwise.
const wanted = ["/repos/{owner}/{repo}/issues/{issue_number}/comments", "/repos/{owner}/{repo}/issues/comments/{comment_id}"];
const paths = Object.fromEntries(wanted.map((path) => [path, api.paths[path]]));
writeFileSync(filtered, JSON.stringify({ openapi: api.openapi, info: api.info, servers: [], paths, components: api.components }));

const comments = [];
const add = (body, type) => {
  const comment = structuredClone(api.components.examples["issue-comment"].value);
  Object.assign(comment, { id: 1000 + comments.length, body, user: { ...comment.user, type } });
  comments.push(comment);
  return comment;
};
// A page and more of others; the last one imitates the report of a team.
for (let n = 0; n < 100; n++) add(`comment ${n}`, "User");
add("<!-- cliq-report: @local/test --> mine", "User");

const server = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const url = new URL(request.url, "http://localhost");
  const answer = (status, value) => response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
  if (request.headers.authorization !== "Bearer job-token") return answer(403, { message: "Resource not accessible" });
  const one = /^\/repos\/acme\/calc\/issues\/comments\/(\d+)$/.exec(url.pathname);
  const all = url.pathname === "/repos/acme/calc/issues/7/comments";
  const text = () => JSON.parse(Buffer.concat(chunks)).body;
  if (all && request.method === "GET") {
    const [page, size] = ["page", "per_page"].map((name) => Number(url.searchParams.get(name)));
    return answer(200, comments.slice((page - 1) * size, page * size));
  }
  if (all && request.method === "POST") {
    const comment = add(text(), "Bot");
    console.log(JSON.stringify({ method: "POST", id: comment.id, body: comment.body }));
    return answer(201, comment);
  }
  const comment = one && comments.find((comment) => comment.id === Number(one[1]));
  if (!comment || request.method !== "PATCH") return answer(404, { message: "Not Found" });
  comment.body = text();
  console.log(JSON.stringify({ method: "PATCH", id: comment.id, body: comment.body }));
  return answer(200, comment);
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
