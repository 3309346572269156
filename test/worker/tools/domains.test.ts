import { expect } from "vitest";
import type { Answer } from "../../../protocol/agent/running.ts";
import type { Domain, DomainCertificate } from "../../../protocol/api/domains.ts";
import { answerFromZone, type Zone } from "../../support/dns-zone.ts";
import { answerNext, effectsOf, scene, serving, useTool } from "../assistant.ts";
import { api, createSite, runningSite, site, uniqueName } from "../service.ts";

const newName = () => `${uniqueName("www")}.example.org`;

async function withDomain() {
  const { key, host } = await scene();
  const { siteId } = await runningSite(key, host, { name: "named" });
  const domain = newName();
  const { body } = await api<Domain>(key, "PATCH", `/sites/${siteId}`, { domain });
  return { key, host, siteId, domain, record: body.record };
}

/** What the resolvers answer from now on. */
function resolve(zone: Zone) {
  for (const host of ["cloudflare-dns.com", "dns.google"])
    serving(host, (request) => answerFromZone(zone, new URL(request.url), []));
}

const certificate: DomainCertificate = {
  issuer: "Let's Encrypt",
  notBefore: "2020-01-01T00:00:00.000Z",
  notAfter: "2020-03-31T00:00:00.000Z",
  error: null,
  errorAt: null,
};

const served: Answer = { kind: "certificate", isServed: true, tls: true, isValid: true, certificate };

/** A domain whose DNS is right; `verified` is what its host was asked for meanwhile. */
async function withRightDns() {
  const made = await withDomain();
  const { domain, record } = made;
  resolve({ [record.name]: { TXT: [`"${record.value}"`] }, [domain]: { A: ["127.0.0.1"] } });
  const verified = answerNext(made.host, served);
  await useTool(made.key, "verify_domain", { site: "named", domain });
  return { ...made, verified: await verified };
}

effectsOf("domains", {
  list_domains: [
    "shows each name with its state and record",
    async () => {
      const { key, domain, record } = await withDomain();
      const { result } = await useTool(key, "list_domains", { site: "named" });
      expect(result).toMatchObject({ data: [{ domain, status: "PENDING_VERIFICATION", record }] });
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
      expect((await site(key, siteId)).domains).toMatchObject([{ domain, status: "PENDING_VERIFICATION" }]);
    },
  ],
  verify_domain: [
    "looks up its records, and puts the name in service",
    async () => {
      const { key, siteId, domain, verified } = await withRightDns();
      expect(verified).toMatchObject({ kind: "certificate", siteId, hostname: domain });
      expect((await site(key, siteId)).domains).toMatchObject([{ domain, status: "ACTIVE" }]);
    },
  ],
  get_certificate: [
    "shows who issued it and how long it is valid",
    async () => {
      const { key, domain } = await withRightDns();
      const { result } = await useTool(key, "get_certificate", { site: "named", domain });
      expect(result).toMatchObject({ domain, status: "ACTIVE", certificate });
    },
  ],
  renew_certificate: [
    "has the host obtain one that is due",
    async () => {
      const { key, host, domain } = await withRightDns();
      const asked = answerNext(host, served);
      const { reply } = await useTool(key, "renew_certificate", { site: "named", domain });
      expect(await asked).toMatchObject({ kind: "certificate", hostname: domain });
      expect(reply.toolCalls).toMatchObject([{ tool: "renew_certificate" }]);
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
