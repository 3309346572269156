import { afterEach, beforeAll, expect, it, vi } from "vitest";
import { answerFromZone } from "../support/dns-zone.ts";
import { pagesOfOperator } from "./pages.ts";
import { account, bindings, createSite, operator, site, uniqueName } from "./service.ts";

let pages: Awaited<ReturnType<typeof pagesOfOperator>>;
beforeAll(async () => {
  pages = await pagesOfOperator();
});
afterEach(() => vi.restoreAllMocks());
const pathOf = (siteId: string) => `/sites/${siteId}/domains`;
const domainsOf = async (siteId: string) => (await site(await operator(), siteId)).domains;

it("a site's domains are shown to its owner alone", async () => {
  const { siteId } = await createSite(await account());
  expect((await pages.show(pathOf(siteId))).status).toBe(403);
  expect((await pages.send(pathOf(siteId), "add", { domain: "www.not-mine.example" })).status).toBe(403);
  expect((await pages.show(pathOf("site_unknown"))).status).toBe(404);
});

it("a pasted address is added with its pair, and the records to create are shown to copy", async () => {
  const { siteId } = await createSite(await operator());
  expect((await pages.show(pathOf(siteId))).text).toContain("No domain of your own yet");
  const zone = `${uniqueName("shop")}.example`;
  const added = await pages.send(pathOf(siteId), "add", {
    domain: `https://www.${zone}/path?x=1`,
    pair: "true",
  });
  expect([added.status, added.location]).toEqual([303, pathOf(siteId)]);
  const domains = await domainsOf(siteId);
  expect(domains.map(({ domain, redirectTo }) => [domain, redirectTo])).toEqual([
    [`www.${zone}`, null],
    [zone, `www.${zone}`],
  ]);
  const { text } = await pages.show(pathOf(siteId));
  expect(domains.map(({ record }) => record.name)).toEqual([
    `_berth-challenge.${zone}`,
    `_berth-challenge.${zone}`,
  ]);
  for (const { record, target } of domains) {
    expect(text).toContain(`data-copy="${record.name}"`);
    expect(text).toContain(`data-copy="${record.value}"`);
    expect(text).toContain(`data-copy="${target}"`);
  }
  expect(text.split("Proves that the name is yours.")).toHaveLength(2);
  expect(text.split("The same record as above: create it once.")).toHaveLength(2);
  expect(text).toMatch(/<strong>ALIAS<\/strong>/);
  expect(text).toMatch(/<strong>CNAME<\/strong>/);
  await pages.send(pathOf(siteId), "remove", { domain: zone });
  expect((await domainsOf(siteId)).map(({ domain }) => domain)).toEqual([`www.${zone}`]);
  await pages.send(pathOf(siteId), "add", { domain: zone });
  expect((await pages.send(pathOf(siteId), "remove", { domain: `www.${zone}` })).status).toBe(303);
  // Its counterpart is there, and stays as it is.
  expect((await pages.send(pathOf(siteId), "add", { domain: `www.${zone}`, pair: "true" })).status).toBe(303);
  expect((await domainsOf(siteId)).map(({ domain, redirectTo }) => [domain, redirectTo])).toEqual([
    [zone, null],
    [`www.${zone}`, null],
  ]);
});

it("a name of half a megabyte, as strangers send it, takes no time to speak of", async () => {
  const { siteId } = await createSite(await operator());
  const started = performance.now();
  const { status } = await pages.send(pathOf(siteId), "add", { domain: `${"?".repeat(300_000)}\nx` });
  expect(status).toBe(400);
  expect(performance.now() - started).toBeLessThan(5_000);
});

it("the records of a domain are told as forms of DNS providers want them", async () => {
  const { siteId } = await createSite(await operator());
  const zone = `${uniqueName("hints")}.co.uk`;
  await pages.send(pathOf(siteId), "add", { domain: `shop.${zone}` });
  const below = await pages.show(pathOf(siteId));
  const [, hints = ""] =
    /<details class="body" id="providers-[^]*?<\/summary>([^]*?)<\/details>/.exec(below.text) ?? [];
  expect(hints).toContain(`Most providers append <code>${zone}</code>`);
  for (const name of ["_berth-challenge.shop", "shop"]) expect(hints).toContain(`data-copy="${name}"`);
  // By a proxy the name leads elsewhere, also once it is in service.
  expect(hints).toContain(
    "Set the proxy status to “DNS only”, or the encryption mode of SSL/TLS to “Full (strict)”",
  );
  expect(below.text).toMatch(/A proxy or CDN of yours may answer/);
  expect(hints).not.toContain("ALIAS");
  await pages.send(pathOf(siteId), "remove", { domain: `shop.${zone}` });
  await pages.send(pathOf(siteId), "add", { domain: zone });
  const root = (await pages.show(pathOf(siteId))).text;
  expect(root).toContain('data-copy="_berth-challenge"');
  expect(root).toMatch(/<code>@<\/code>, or nothing,/);
  expect(root).toMatch(/<dt>Cloudflare<\/dt><dd>[^<]*which Cloudflare flattens/);
});

it("the page of domains speaks of its own button and of names as people read them, and offers no wildcard that is refused", async () => {
  const { siteId } = await createSite(await operator());
  await pages.send(pathOf(siteId), "add", { domain: `${uniqueName("laden")}-käse.example`, pair: "true" });
  const { text } = await pages.show(pathOf(siteId));
  expect(text).toContain("or immediately when you press Check now.");
  expect(text).toMatch(/redirects to [^<]*-käse\.example</);
  expect(text).not.toContain("*.example.com");
});

it("what is no domain, or is there already, is refused beside the field with what was typed", async () => {
  const { siteId } = await createSite(await operator());
  const wrong = await pages.send(pathOf(siteId), "add", { domain: "no domain <b>" });
  expect(wrong.status).toBe(400);
  expect(wrong.text).toMatch(/name="domain"[^>]*aria-invalid="true"/);
  expect(wrong.text).toContain("no domain &lt;b&gt;");
  const domain = `${uniqueName("twice")}.pages.example`;
  await pages.send(pathOf(siteId), "add", { domain });
  const again = await pages.send(pathOf(siteId), "add", { domain });
  expect([again.status, again.text.includes("already has this domain")]).toEqual([409, true]);
});

it("a check looks at once, and says what was found", async () => {
  const { siteId } = await createSite(await operator());
  const domain = `${uniqueName("checked")}.pages.example`;
  await pages.send(pathOf(siteId), "add", { domain });
  const [added] = await domainsOf(siteId);
  const zone = { [added?.record.name ?? ""]: { TXT: [`"${added?.record.value}"`] } };
  vi.spyOn(globalThis, "fetch").mockImplementation(async (input) =>
    answerFromZone(zone, new URL(new Request(input).url)),
  );
  expect((await pages.show(pathOf(siteId))).text).toContain("Prove that it is yours");
  const { status, location } = await pages.send(pathOf(siteId), "check", { domain });
  expect([status, location]).toEqual([303, pathOf(siteId)]);
  const [found] = await domainsOf(siteId);
  expect(found?.verifiedAt).not.toBeNull();
  const { text } = await pages.show(pathOf(siteId));
  expect(text).toContain("Last checked");
  expect(text).not.toContain("Prove that it is yours");
  expect(text).toContain(found?.problems[0]?.message.replaceAll("'", "&#39;"));
});

it("a proved name becomes the primary one, and no longer", async () => {
  const { siteId } = await createSite(await operator());
  const domain = `${uniqueName("primary")}.pages.example`;
  await pages.send(pathOf(siteId), "add", { domain });
  expect((await pages.show(pathOf(siteId))).text).not.toContain("Make primary");
  expect((await pages.send(pathOf(siteId), "primary", { domain })).status).toBe(400);
  await bindings.DB.prepare(
    "UPDATE domains SET verified_at = 1, state = 'ACTIVE', problems = '[]' WHERE name = ?",
  )
    .bind(domain)
    .run();
  expect((await pages.show(pathOf(siteId))).text).toContain("Make primary");
  await pages.send(pathOf(siteId), "primary", { domain });
  expect((await site(await operator(), siteId)).ingress.primaryDomain).toBe(domain);
  expect((await pages.show(pathOf(siteId))).text).toContain("No longer primary");
  await pages.send(pathOf(siteId), "no-primary", { domain });
  expect((await site(await operator(), siteId)).ingress.primaryDomain).toBeNull();
});
