import createClient from "openapi-fetch";
import type { paths } from "./schema.d.ts";

/**
 * The main job by a client whose types were generated from openapi.json: create, pay, watch, read the log, delete.
 * Usage: drive.ts <base url> <site url> <key> <git address>; prints the site's last state as JSON.
 */
const [baseUrl = "", siteUrl = "", key = "", githubUrl = ""] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${key}` } });

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
await fetch(`${siteUrl}/invoice/${created.invoiceToken}/pay`, { method: "POST" });

const params = { path: { id: created.siteId } };
for (;;) {
  const { data: site } = await client.GET("/sites/{id}", { params });
  if (site && site.status !== "PENDING" && site.status !== "DEPLOYING") {
    const id = site.latestDeployment?.id ?? "";
    const { data: log } = await client.GET("/deployments/{id}/logs", { params: { path: { id } } });
    await client.PATCH("/sites/{id}", { params, body: { envVariables: [{ key: "DRIVEN", value: "1" }] } });
    await client.DELETE("/sites/{id}", { params });
    const lines = typeof log === "object" ? log.data.map(({ text }) => text) : [];
    process.stdout.write(JSON.stringify({ status: site.status, url: site.url, lines }));
    break;
  }
  await new Promise((resolve) => setTimeout(resolve, 1500));
}
