// Create a short link, read the list of all links, and verify webhooks.
// Needs Node.js 18 or later, and no packages.
import { createHmac, randomUUID, timingSafeEqual } from "node:crypto";
import { pathToFileURL } from "node:url";

// Send a request, again if the limit is reached or the service is busy.
export async function call(method, path, body) {
  const headers = {
    "Authorization": `Bearer ${process.env.KEY}`,
    "Content-Type": "application/json",
    "Idempotency-Key": randomUUID(), // a write that is repeated is carried out once
  };
  for (;;) {
    const response = await fetch(process.env.BASE + path, { method, headers, body: body && JSON.stringify(body) });
    const answer = await response.json();
    if (response.ok) return answer;
    if (response.status !== 429 && response.status !== 503) throw new Error(answer.message);
    await new Promise((resume) => setTimeout(resume, 1000 * response.headers.get("Retry-After")));
  }
}

export async function* links() {
  let after = "";
  while (after !== undefined) {
    const page = (await call("GET", `/api/urls?limit=100&after=${after}`)).data;
    yield* page.urls;
    after = page.next;
  }
}

// Return true if a webhook with this secret sent the body within the last five minutes.
// The body is what arrived, before it is parsed.
export function isGenuine(secret, headers, body) {
  const sent = headers["webhook-timestamp"];
  const key = Buffer.from(secret.replace("whsec_", ""), "base64");
  const signature = createHmac("sha256", key).update(`${headers["webhook-id"]}.${sent}.`).update(body).digest();
  const isSigned = headers["webhook-signature"].split(" ").some((other) => {
    const bytes = Buffer.from(other.replace("v1,", ""), "base64");
    return bytes.length === signature.length && timingSafeEqual(bytes, signature);
  });
  return isSigned && Math.abs(Date.now() / 1000 - sent) < 300;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const link = await call("POST", "/api/url/add", { url: "https://example.com/a/long/path" });
  console.log(link.shorturl);
  let number = 0;
  for await (const _ of links()) number++;
  console.log(number, "links");
}
