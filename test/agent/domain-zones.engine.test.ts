import { afterAll, beforeAll, expect, it } from "vitest";
import { dnsOverHttps, type Dns } from "../../worker/adapters/dns.ts";
import { exampleOf } from "../../protocol/wildcards.ts";
import { challengeName, delegationName } from "../../worker/domain/certificates.ts";
import { addressProblems, caaNames, caaProblem, proofProblem } from "../../worker/domain/domain-check.ts";
import { NameServer } from "../support/name-server.ts";

// One zone for each fault, served by a real name server.
const target = "shop-1.sites.example";
const delegation = delegationName("0123456789abcdef", "sites.example");
/** Of a name that dnsmasq does not know, as `--cname` requires: a record of type 5 in its binary form (RFC 1035, 3.3). */
const cname = (name: string, of: string) => {
  const labels = of.split(".").map((label) => String.fromCharCode(label.length) + label);
  return `--dns-rr=${name},5,${Buffer.from(`${labels.join("")}\0`, "latin1").toString("hex")}`;
};
const records = [
  `--host-record=${target},203.0.113.7,2001:db8::7`,
  `--cname=right.example.com,${target}`,
  "--host-record=address.example.com,192.0.2.1",
  "--host-record=both.example.com,203.0.113.7,192.0.2.1",
  "--host-record=six.example.com,203.0.113.7,2001:db8::bad",
  "--host-record=old.example.net,192.0.2.9",
  "--cname=alias.example.com,old.example.net",
  "--host-record=proxied.example.com,104.16.1.1",
  "--host-record=example.com,192.0.2.1",
  "--txt-record=_berth-challenge.other.example.com,berth-verify=another",
  "--txt-record=_berth-challenge.right.example.com,berth-,verify=mine",
  "--caa-record=strict.example.com,0,issue,other.example",
  "--host-record=www.strict.example.com,203.0.113.7",
  "--caa-record=open.example.com,0,issue,letsencrypt.org",
  cname("dangling.example.com", "gone.example.net"),
  // A wildcard that is right, and one whose records are others.
  cname("_acme-challenge.wild.example.com", delegation),
  `--cname=berth-check.wild.example.com,${target}`,
  cname("_acme-challenge.lost.example.com", "elsewhere.example.net"),
  "--host-record=berth-check.lost.example.com,192.0.2.1",
  "--caa-record=lost.example.com,0,issuewild,;",
];

let server: NameServer;
let dns: Dns;
beforeAll(async () => {
  server = await NameServer.start(records);
  // The second one is away: what the first says counts.
  dns = dnsOverHttps([server.endpoint, "http://127.0.0.1:9/resolve"]);
});
afterAll(() => server.stop());

async function addressesOf(name: string, of = target): Promise<string[]> {
  const seen = await dns.addresses(exampleOf(name));
  const found = addressProblems(name, of, seen, await dns.addresses(of));
  return found.map(({ message }) => message);
}
async function caaOf(name: string): Promise<string | null> {
  for (const at of caaNames(name)) {
    const found = await dns.caa(at);
    if (found.length > 0) return caaProblem(name, at, found, ["letsencrypt.org"])?.message ?? null;
  }
  return null;
}
const proofOf = async (name: string) =>
  proofProblem(
    { type: "TXT", name: `_berth-challenge.${name}`, value: "berth-verify=mine" },
    await dns.texts(`_berth-challenge.${name}`),
  )?.message ?? null;

const should = `CNAME ${target} or A 203.0.113.7 and AAAA 2001:db8::7`;

it("a zone that is right has no problem", async () => {
  expect(await addressesOf("right.example.com")).toEqual([]);
  expect(await proofOf("right.example.com")).toBeNull();
  expect([await caaOf("open.example.com"), await caaOf("right.example.com")]).toEqual([null, null]);
});

it.each([
  ["address.example.com", `address.example.com has A 192.0.2.1, it should be ${should}.`],
  ["both.example.com", `both.example.com has A 192.0.2.1, it should be ${should}.`],
  [
    "six.example.com",
    "six.example.com has AAAA 2001:db8::bad, which leads elsewhere. It should be AAAA 2001:db8::7: visitors and certificate authorities prefer IPv6.",
  ],
  ["alias.example.com", `alias.example.com has CNAME old.example.net, it should be ${should}.`],
  [
    "proxied.example.com",
    `proxied.example.com has A 104.16.1.1, an address of Cloudflare's proxy, and no request by way of it has reached the site's host. Let the record be ${should}, or turn its proxy off ("DNS only").`,
  ],
  ["missing.example.com", `missing.example.com has no address. Create ${should}.`],
  [
    "example.com",
    `example.com has A 192.0.2.1, it should be A 203.0.113.7 and AAAA 2001:db8::7, or an ALIAS (ANAME) record to ${target} where its DNS provider has those.`,
  ],
])("the zone of %s is told its fault", async (name, sentence) => {
  expect(await addressesOf(name)).toEqual([sentence]);
});

it("a record of ownership that is missing or another is told", async () => {
  expect(await proofOf("missing.example.com")).toBe(
    "There is no TXT record at _berth-challenge.missing.example.com yet. Create it with the value berth-verify=mine, wait a few minutes, then verify again.",
  );
  expect(await proofOf("other.example.com")).toBe(
    "The TXT record at _berth-challenge.other.example.com has a different value, berth-verify=another. Set it to berth-verify=mine.",
  );
});

it("CAA records of a parent forbid a certificate, and are named", async () => {
  expect(await caaOf("www.strict.example.com")).toBe(
    'strict.example.com has CAA 0 issue "other.example", which forbids our certificate authority to issue for www.strict.example.com. Add CAA 0 issue "letsencrypt.org" there, or remove its CAA records.',
  );
});

it("a wildcard is told its faults: the delegation, the names below it, and CAA records for wildcards", async () => {
  const delegationOf = async (name: string) =>
    proofProblem(
      { type: "CNAME", name: challengeName(name), value: delegation },
      await dns.alias(challengeName(name)),
    )?.message ?? null;
  expect(await delegationOf("*.wild.example.com")).toBeNull();
  expect(await addressesOf("*.wild.example.com")).toEqual([]);
  expect(await caaOf("*.wild.example.com")).toBeNull();
  expect(await delegationOf("*.lost.example.com")).toBe(
    `The CNAME record at _acme-challenge.lost.example.com has a different value, elsewhere.example.net. Set it to ${delegation}.`,
  );
  expect(await delegationOf("*.missing.example.com")).toContain(
    "There is no CNAME record at _acme-challenge.missing.example.com yet.",
  );
  expect(await addressesOf("*.lost.example.com")).toEqual([
    `*.lost.example.com has A 192.0.2.1, it should be ${should}.`,
  ]);
  expect(await caaOf("*.lost.example.com")).toContain(
    'lost.example.com has CAA 0 issuewild ";", which forbids our certificate authority to issue for *.lost.example.com.',
  );
});

it("an alias of a name without an address, and a site without one, are told", async () => {
  expect(await addressesOf("dangling.example.com")).toEqual([
    `dangling.example.com has CNAME gone.example.net, which has no address. It should be ${should}.`,
  ]);
  expect(await addressesOf("right.example.com", "none.sites.example")).toEqual([
    "none.sites.example, the name of the site itself, has no address. The operator of this installation must set its record.",
  ]);
});

it("without any resolver, nothing is concluded", async () => {
  const none = dnsOverHttps(["http://127.0.0.1:9/resolve"]);
  await expect(none.addresses("right.example.com")).rejects.toThrow("No DNS resolver answered");
});
