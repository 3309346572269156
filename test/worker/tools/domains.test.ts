import { expect } from "vitest";
import type { Domain, DomainCertificate } from "../../../protocol/api/domains.ts";
import { answerFromZone } from "../../support/dns-zone.ts";
import { effectsOf, scene, serving, useTool } from "../assistant.ts";
import { type Agent, api, createSite, runningSite, site, uniqueName } from "../service.ts";

const newName = () => `${uniqueName("www")}.example.org`;

async function withDomain() {
  const { key, host } = await scene();
  const { siteId } = await runningSite(key, host, { name: "named" });
  const domain = newName();
  const { body } = await api<Domain>(key, "PATCH", `/sites/${siteId}`, { domain });
  return { key, host, siteId, domain, record: body.record };
}

const certificate: DomainCertificate = {
  issuer: "Test CA",
  notBefore: new Date(Date.now() - 86_400_000).toISOString(),
  notAfter: new Date(Date.now() + 86_400_000 * 60).toISOString(),
  error: null,
  errorAt: null,
};

/** The name leads here, and is proved. */
function resolving(domain: string, { name, value }: Domain["record"]): void {
  const zone = { [name]: { TXT: [value] }, [domain]: { A: ["127.0.0.1"] } };
  for (const resolver of ["cloudflare-dns.com", "dns.google"])
    serving(resolver, (request) => answerFromZone(zone, new URL(request.url)));
}

/** What the host says of the certificate that its ingress serves. */
async function report(host: Agent, found: DomainCertificate, isValid = true): Promise<void> {
  const { requestId } = await host.next("ask");
  const answer = { kind: "certificate", isServed: true, tls: true, isValid, certificate: found };
  host.send({ type: "answer", requestId, answer, last: true });
}

effectsOf("domains", {
  list_domains: [
    "shows each name with its state and record",
    async () => {
      const { key, domain, record } = await withDomain();
      const { result } = await useTool(key, "list_domains", { site: "named" });
      expect(result).toMatchObject([{ domain, status: "PENDING_VERIFICATION", record }]);
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
    "looks at its records and its certificate, and puts the name in service",
    async () => {
      const { key, host, siteId, domain, record } = await withDomain();
      resolving(domain, record);
      const asked = useTool(key, "verify_domain", { site: "named", domain });
      await report(host, certificate);
      expect((await asked).result).toMatchObject({ domain, status: "ACTIVE", certificate });
      expect((await site(key, siteId)).domains).toMatchObject([{ domain, status: "ACTIVE" }]);
    },
  ],
  get_certificate: [
    "shows issuer, validity and the last refusal, as the host reported them",
    async () => {
      const { key, host, siteId, domain, record } = await withDomain();
      expect((await useTool(key, "get_certificate", { site: "named", domain })).result).toMatchObject({
        domain,
        status: "PENDING_VERIFICATION",
        certificate: null,
      });
      resolving(domain, record);
      const asked = api(key, "POST", `/sites/${siteId}/domains/${domain}/verify`);
      await report(host, certificate);
      await asked;
      expect((await useTool(key, "get_certificate", { site: "named", domain })).result).toMatchObject({
        status: "ACTIVE",
        certificate,
      });
    },
  ],
  renew_certificate: [
    "has the host obtain the one that it could not obtain before",
    async () => {
      const { key, host, domain, record } = await withDomain();
      resolving(domain, record);
      const first = useTool(key, "verify_domain", { site: "named", domain });
      await report(
        host,
        { ...certificate, issuer: null, notBefore: null, notAfter: null, error: "caa" },
        false,
      );
      expect((await first).result).toMatchObject({ status: "ERROR" });
      const asked = useTool(key, "renew_certificate", { site: "named", domain });
      await report(host, certificate);
      expect((await asked).result).toMatchObject({ domain, status: "ACTIVE", certificate });
    },
  ],
  remove_domain: [
    "takes it away after a yes, so that another account may have it",
    async () => {
      const { key, siteId, domain } = await withDomain();
      const unknown = { site: "named", domain: `other.${domain}` };
      const { result } = await useTool(key, "remove_domain", unknown, { asks: false });
      expect(JSON.stringify(result)).toContain("is no domain of the site named");
      await useTool(key, "remove_domain", { site: "named", domain: domain.toUpperCase() });
      expect((await site(key, siteId)).domains).toEqual([]);
    },
  ],
  set_primary_domain: [
    "sends visitors of the other names to it, which has to be one of the site's, and serves each by itself again",
    async () => {
      const { key, siteId, domain } = await withDomain();
      const { result } = await useTool(key, "set_primary_domain", { site: "named", domain });
      expect(JSON.stringify(result)).toContain(`${domain} is not a verified name of this site`);
      const own = new URL((await site(key, siteId)).url).hostname;
      await useTool(key, "set_primary_domain", { site: "named", domain: own });
      expect((await site(key, siteId)).ingress.primaryDomain).toBe(own);
      await useTool(key, "set_primary_domain", { site: "named", domain: null });
      expect((await site(key, siteId)).ingress.primaryDomain).toBeNull();
    },
  ],
  set_redirect_rules: [
    "replaces them all, refuses a circle, and takes them away",
    async () => {
      const { key, siteId } = await withDomain();
      const rules = [{ from: "/old", to: "/new", code: 301 as const }];
      const { result } = await useTool(key, "set_redirect_rules", { site: "named", rules });
      expect(result).toMatchObject({ redirects: rules });
      const circle = await useTool(key, "set_redirect_rules", {
        site: "named",
        rules: [{ from: "/a", to: "/a" }],
      });
      expect(JSON.stringify(circle.result)).toContain("leads back to itself");
      expect((await site(key, siteId)).ingress.redirects).toEqual(rules);
      await useTool(key, "set_redirect_rules", { site: "named", rules: [] });
      expect((await site(key, siteId)).ingress.redirects).toBeNull();
    },
  ],
  set_access_protection: [
    "sets name, password and addresses, shows no password, and opens the site again",
    async () => {
      const { key, siteId } = await withDomain();
      const allow = ["203.0.113.0/24"];
      const { result } = await useTool(key, "set_access_protection", {
        site: "named",
        auth: { username: "team", password: "correct horse" },
        allow,
      });
      expect(JSON.stringify(result)).not.toContain("correct horse");
      const protectedSite = { basicAuth: { username: "team", hasPassword: true }, allow };
      expect((await site(key, siteId)).ingress).toMatchObject(protectedSite);
      await useTool(key, "set_access_protection", { site: "named", auth: null, allow: null });
      expect((await site(key, siteId)).ingress).toMatchObject({ basicAuth: null, allow: null });
    },
  ],
});
