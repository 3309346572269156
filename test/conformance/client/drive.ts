import createClient from "openapi-fetch";
import type { paths } from "./schema.d.ts";

/**
 * The main job by a client whose types were generated from openapi.json: sign in, create, pay, watch, read the log, delete.
 * Usage: drive.ts <base url> <site url> <key> <git address> <email> <password>; prints the site's last state as JSON.
 */
const [baseUrl = "", siteUrl = "", key = "", githubUrl = "", email = "", password = ""] =
  process.argv.slice(2);
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${key}` } });

const site = createClient<paths>({ baseUrl: siteUrl, headers: { Origin: siteUrl } });

const signedIn = await site.POST("/api/auth/sign-in/email", { body: { email, password } });
if (!signedIn.data) throw new Error(`Sign-in answered ${JSON.stringify(signedIn.error)}`);
const cookies = signedIn.response.headers.getSetCookie().map((cookie) => cookie.split(";")[0]);
const headers = { Cookie: cookies.join("; ") };
const { data: session } = await site.GET("/api/auth/get-session", { headers });
if (session?.user.email !== email) throw new Error(`Signed in as ${JSON.stringify(session)}`);

const { data: packs } = await client.GET("/packs");
const packId = packs?.data.find(({ kind }) => kind === "site")?.id;
const { data: created, error } = await client.POST("/sites", {
  params: { header: { "Idempotency-Key": `drive-${Date.now()}` } },
  body: {
    name: `driven-${Date.now().toString(36)}`,
    deployType: "github",
    githubUrl,
    port: 3000,
    billingTerm: 1,
    ...(packId !== undefined && { packId }),
  },
});
if (!created) throw new Error(JSON.stringify(error));
const invoice = { params: { path: { token: created.invoiceToken } } };
await site.POST("/invoice/{token}/pay", invoice);
const { data: paid } = await site.GET("/invoice/{token}", invoice);
if (paid?.status !== "paid") throw new Error(`The invoice is ${paid?.status}`);

const params = { path: { id: created.siteId } };
for (;;) {
  const { data: now } = await client.GET("/sites/{id}", { params });
  if (now && now.status !== "PENDING" && now.status !== "DEPLOYING") {
    const id = now.latestDeployment?.id ?? "";
    const { data: log } = await client.GET("/deployments/{id}/logs", { params: { path: { id } } });
    await client.PATCH("/sites/{id}", { params, body: { envVariables: [{ key: "DRIVEN", value: "1" }] } });
    await client.DELETE("/sites/{id}", { params });
    const lines = typeof log === "object" ? log.data.map(({ text }) => text) : [];
    process.stdout.write(JSON.stringify({ status: now.status, url: now.url, lines }));
    break;
  }
  await new Promise((resolve) => setTimeout(resolve, 1500));
}
