import { expect } from "vitest";
import type { Domain } from "../../../protocol/api/sites.ts";
import { effectsOf, scene, serving, useTool } from "../assistant.ts";
import { api, createSite, runningSite, site, uniqueName } from "../service.ts";

const newName = () => `${uniqueName("www")}.example.org`;

async function withDomain() {
  const { key, host } = await scene();
  const { siteId } = await runningSite(key, host, { name: "named" });
  const domain = newName();
  const { body } = await api<Domain>(key, "PATCH", `/sites/${siteId}`, { domain });
  return { key, siteId, domain, record: body.record };
}

effectsOf("domains", {
  list_domains: [
    "shows each name with its state and record",
    async () => {
      const { key, domain, record } = await withDomain();
      const { result } = await useTool(key, "list_domains", { site: "named" });
      expect(result).toMatchObject([{ domain, status: "pending", record }]);
    },
  ],
  add_domain: [
    "adds it, and tells the record to set",
    async () => {
      const { key } = await scene();
      const { siteId } = await createSite(key, { name: "to-name" });
      const domain = newName();
      const { result } = await useTool(key, "add_domain", { site: "to-name", domain });
      expect(result).toMatchObject({ domain, record: { type: "TXT", name: `_berth-challenge.${domain}` } });
      expect((await site(key, siteId)).domains).toMatchObject([{ domain, status: "pending" }]);
    },
  ],
  verify_domain: [
    "looks up the TXT record, and puts the name in service",
    async () => {
      const { key, siteId, domain, record } = await withDomain();
      for (const host of ["cloudflare-dns.com", "dns.google"])
        serving(host, () => Response.json({ Status: 0, Answer: [{ type: 16, data: record?.value }] }));
      await useTool(key, "verify_domain", { site: "named", domain });
      expect((await site(key, siteId)).domains).toMatchObject([{ domain, status: "verified" }]);
    },
  ],
  remove_domain: [
    "takes it away after a yes, so that another account may have it",
    async () => {
      const { key, siteId, domain } = await withDomain();
      await useTool(key, "remove_domain", { site: "named", domain });
      expect((await site(key, siteId)).domains).toEqual([]);
    },
  ],
});
