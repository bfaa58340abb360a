// A code host on this machine: git over TLS with a password, and the API of pull requests with the examples of the published description.
// Arguments: directory of bare repositories, certificate, key, description, filtered description. Prints the ports, then each request to the API.
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { readFileSync, writeFileSync } from "node:fs";

const [, , root, certificate, key, description, filtered] = process.argv;
const api = JSON.parse(readFileSync(description));
// The few paths that are called: Prism reads the whole description otherwise.
const wanted = ["/repos/{owner}/{repo}/pulls", "/user"];
const paths = Object.fromEntries(wanted.map((path) => [path, api.paths[path]]));
writeFileSync(filtered, JSON.stringify({ openapi: api.openapi, info: api.info, servers: [], paths, components: api.components }));
const example = (name) => structuredClone(api.components.examples[name].value);
const PASSWORD = "Basic " + Buffer.from("ann:secret-token").toString("base64");

const git = createTlsServer({ cert: readFileSync(certificate), key: readFileSync(key) }, (request, response) => {
  if (request.headers.authorization !== PASSWORD) {
    response.writeHead(401, { "www-authenticate": 'Basic realm="git"' }).end();
    return;
  }
  const url = new URL(request.url, "https://localhost");
  const env = {
    PATH: process.env.PATH, GIT_PROJECT_ROOT: root, GIT_HTTP_EXPORT_ALL: "1", PATH_INFO: url.pathname, QUERY_STRING: url.search.slice(1),
    REQUEST_METHOD: request.method, CONTENT_TYPE: request.headers["content-type"] ?? "", REMOTE_USER: "ann", REMOTE_ADDR: "127.0.0.1",
    HTTP_CONTENT_ENCODING: request.headers["content-encoding"] ?? "", GIT_PROTOCOL: request.headers["git-protocol"] ?? "",
  };
  if (request.headers["content-length"]) env.CONTENT_LENGTH = request.headers["content-length"];
  const backend = spawn("git", ["http-backend"], { env, stdio: ["pipe", "pipe", "inherit"] });
  request.pipe(backend.stdin);
  let head = Buffer.alloc(0);
  let isOpen = false;
  backend.stdout.on("data", (data) => {
    if (isOpen) return response.write(data);
    head = Buffer.concat([head, data]);
    const end = head.indexOf("\r\n\r\n");
    if (end < 0) return;
    let status = 200;
    for (const line of head.subarray(0, end).toString().split("\r\n")) {
      const [name, ...rest] = line.split(": ");
      if (name.toLowerCase() === "status") status = parseInt(rest.join(": "));
      else response.setHeader(name, rest.join(": "));
    }
    response.writeHead(status);
    isOpen = true;
    response.write(head.subarray(end + 4));
  });
  backend.stdout.on("end", () => response.end());
});

const pulls = [];
const host = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const url = new URL(request.url, "http://localhost");
  const answer = (status, value) => response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
  const match = /^\/repos\/([^/]+)\/([^/]+)\/pulls$/.exec(url.pathname);
  if (url.pathname === "/user") return answer(200, example("private-user-response-with-public-and-private-information"));
  if (!match) return answer(404, { message: "Not Found" });
  if (request.headers.authorization !== "Bearer secret-token") return answer(403, { message: "Forbidden" });
  const [, owner, name] = match;
  if (request.method === "GET") {
    const head = url.searchParams.get("head");
    return answer(200, pulls.filter((pull) => !head || `${owner}:${pull.head.ref}` === head));
  }
  const asked = JSON.parse(Buffer.concat(chunks).toString());
  const made = example("pull-request");
  Object.assign(made, { number: pulls.length + 1, title: asked.title, body: asked.body, html_url: `https://localhost/${owner}/${name}/pull/${pulls.length + 1}` });
  made.head.ref = asked.head;
  made.base.ref = asked.base;
  // The teams of the examples lack a field that the description requires.
  made.requested_teams = [];
  const listed = example("pull-request-simple-items")[0];
  Object.assign(listed, { number: made.number, title: made.title, body: made.body, html_url: made.html_url });
  listed.head.ref = asked.head;
  listed.base.ref = asked.base;
  listed.requested_teams = [];
  pulls.push(listed);
  console.log("PULL " + JSON.stringify({ owner, name, ...asked }));
  answer(201, made);
});

git.listen(0, "127.0.0.1", () => host.listen(0, "127.0.0.1", () => {
  console.log(`PORTS ${git.address().port} ${host.address().port}`);
}));
