// An OpenID Connect provider whose people sign in with any name: node provider.mjs FOLDER PORT ISSUER BASE_URL
//
// FOLDER has the package oidc-provider, ISSUER is the URL of the proxy in front (tests/support/provider.py), and BASE_URL
// that of the service. PUT /people sets claims of people by name. POST /rotate replaces the signing key.
import { generateKeyPairSync, randomUUID } from "node:crypto";
import { createServer } from "node:http";

const [, , folder, port, issuer, base] = process.argv;
const { Provider } = await import(`${folder}/node_modules/oidc-provider/lib/index.js`);
const people = {};

function start() {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const key = { ...privateKey.export({ format: "jwk" }), kid: randomUUID(), alg: "RS256", use: "sig" };
  return new Provider(issuer, {
    jwks: { keys: [key] },
    cookies: { keys: ["test"] },
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["preferred_username", "groups"] },
    clients: [{
      client_id: "linkmgr",
      client_secret: "secret + % of the client",
      redirect_uris: [`${base}/login/oidc/callback`],
      post_logout_redirect_uris: [`${base}/login`],
    }],
    features: { devInteractions: { enabled: true } },
    pkce: { required: () => true },
    findAccount: (_, name) => ({
      accountId: name,
      claims: () => ({
        sub: name, email: `${name}@example.org`, email_verified: true, preferred_username: name, ...people[name],
      }),
    }),
    async loadExistingGrant(ctx) { // nobody is asked for consent
      const { client, session, provider } = ctx.oidc;
      const known = session.grantIdFor(client.clientId);
      if (known) return provider.Grant.find(known);
      const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId });
      grant.addOIDCScope("openid email profile");
      await grant.save();
      return grant;
    },
  }).callback();
}

let answer = start();
createServer(async (request, response) => {
  if (request.url === "/people") {
    let body = "";
    for await (const part of request) body += part;
    Object.assign(people, JSON.parse(body));
    response.end();
  } else if (request.url === "/rotate") {
    answer = start();
    response.end();
  } else {
    answer(request, response);
  }
}).listen(Number(port), "127.0.0.1", () => console.log("ready"));
