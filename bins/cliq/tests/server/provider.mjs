// An OpenID Connect provider on this machine: `oidc-provider`, with accounts whose login name is their id. Prints its port.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(process.env.NODE_MODULES + "/");
const { default: Provider } = await import(pathToFileURL(require.resolve("oidc-provider")).href);
const [, , port, redirect, home] = process.argv;

const ACCOUNTS = {
  ann: { name: "Ann", email: "Ann@Example.com", email_verified: true, groups: ["dev"] },
  ops: { name: "Olga", email: "ops@example.com", email_verified: true, groups: ["dev", "ops"] },
  bob: { name: "Bob", email: "bob@example.com", email_verified: true, groups: ["guests"] },
  // The address of another person, which the provider has not verified.
  eve: { name: "Eve", email: "ann@example.com", email_verified: false, groups: ["dev"] },
  nobody: { name: "Nobody", email: "nobody@example.com", email_verified: true, groups: [] },
};

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [{ client_id: "cliq", client_secret: "a secret of the client", redirect_uris: [redirect], post_logout_redirect_uris: [home], grant_types: ["authorization_code"], response_types: ["code"] }],
  claims: { openid: ["sub"], profile: ["name"], email: ["email", "email_verified"], groups: ["groups"] },
  findAccount: (ctx, id) => (ACCOUNTS[id] ? { accountId: id, claims: async () => ({ sub: id, ...ACCOUNTS[id] }) } : undefined),
  pkce: { required: () => true },
  features: { devInteractions: { enabled: true }, rpInitiatedLogout: { enabled: true } },
  cookies: { keys: ["a key of the tests"] },
});
provider.listen(Number(port), "127.0.0.1", () => console.log("READY"));
