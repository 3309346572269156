import { describe, expect, it } from "vitest";
import { DomainName } from "../../protocol/api/domains.ts";
import { domainStatuses } from "../../protocol/states.ts";
import {
  addressProblems,
  caaNames,
  caaProblem,
  leadsHere,
  proofProblem,
} from "../../worker/domain/domain-check.ts";
import { displayName, isApex, isBelow, isPublicSuffix, pairOf } from "../../worker/domain/domain-names.ts";
import type { Addresses } from "../../worker/domain/resolved-records.ts";
import { domainEvents, untilNextLook } from "../../worker/domain/domain-states.ts";

const stored = (text: unknown) => DomainName.safeParse(text).data;

describe("a domain's name", () => {
  it.each([
    ["WWW.Example.COM", "www.example.com"],
    [" example.com. ", "example.com"],
    ["*.Example.com", "*.example.com"],
    ["Bücher.example", "xn--bcher-kva.example"],
    ["bücher。example", "xn--bcher-kva.example"],
    ["faß.de", "xn--fa-hia.de"],
    ["例え.テスト", "xn--r8jz45g.xn--zckzah"],
  ])("%s is stored as %s", (typed, name) => expect(stored(typed)).toBe(name));

  it.each([
    ["localhost"],
    ["10.0.0.1"],
    ["0x7f.1"],
    ["a..com"],
    ["-a.example.com"],
    ["a_b.example.com"],
    ["https://example.com"],
    ["example.com/path"],
    ["user@example.com"],
    ["example.com:443"],
    ["a%2eexample.com"],
    ["*.*.example.com"],
    ["www.*.com"],
    ["*.com"],
    ["*"],
    ["\ud800.com"],
    ["a\u0000.com"],
    ["a.com\u0000"],
    ["\u0001a.com"],
    [`${"x".repeat(64)}.com`],
    ["x.".repeat(126) + "com."],
    [""],
  ])("%j is none", (typed) => {
    const name = stored(typed);
    // `*.com` is a name, and refused as a public suffix.
    if (name === "*.com") expect(isPublicSuffix(name)).toBe(true);
    else expect(name).toBeUndefined();
  });

  it("is read in Unicode", () => {
    expect(displayName("xn--bcher-kva.example")).toBe("bücher.example");
    expect(displayName("*.xn--bcher-kva.example")).toBe("*.bücher.example");
    expect(displayName("www.example.com")).toBe("www.example.com");
  });

  it("is nobody's own where anybody registers names below it", () => {
    for (const suffix of ["co.uk", "*.co.uk", "github.io", "com", "xn--p1ai"])
      expect([suffix, isPublicSuffix(suffix)]).toEqual([suffix, true]);
    for (const own of [
      "example.co.uk",
      "*.example.com",
      "me.github.io",
      "shop.example",
      "sub.test",
      "*.internal",
    ])
      expect([own, isPublicSuffix(own)]).toEqual([own, false]);
  });

  it("is a zone's root by the list of public suffixes, and has a pair", () => {
    expect([isApex("example.co.uk"), isApex("www.example.co.uk")]).toEqual([true, false]);
    expect(pairOf("example.co.uk")).toBe("www.example.co.uk");
    expect(pairOf("www.example.co.uk")).toBe("example.co.uk");
    expect(pairOf("shop.example.com")).toBeNull();
    for (const name of ["www.com", "www.co.uk", "www.github.io", "www.intern"])
      expect(pairOf(name)).toBe(`www.${name}`);
    expect(pairOf("*.example.com")).toBeNull();
  });

  it("is the installation's where it is below it, or a wildcard covers it", () => {
    for (const name of ["berth.example", "a.berth.example", "*.berth.example", "*.example"])
      expect([name, isBelow(name, "berth.example")]).toEqual([name, true]);
    for (const name of ["notberth.example", "example", "*.other.example"])
      expect([name, isBelow(name, "berth.example")]).toEqual([name, false]);
  });
});

const target = "shop-1.sites.example";
const wanted: Addresses = { v4: ["203.0.113.7"], v6: ["2001:db8::7"], aliases: [] };
const onlyV4 = { ...wanted, v6: [] };
const sentences = (name: string, seen: Partial<Addresses>, ours = wanted) =>
  addressProblems(name, target, { v4: [], v6: [], aliases: [], ...seen }, ours).map(
    ({ code, message }) => `${code}: ${message}`,
  );

describe("addresses", () => {
  it("that are ours are right, whatever the way to them", () => {
    expect(sentences("www.example.com", { ...wanted, aliases: [target] })).toEqual([]);
    expect(sentences("www.example.com", { v4: ["203.0.113.7"] })).toEqual([]);
    expect(
      sentences("www.example.com", { v4: ["203.0.113.7"], aliases: ["other.example.net", target] }),
    ).toEqual([]);
  });

  it("that lead elsewhere are named one by one, with what they should be", () => {
    expect(sentences("example.com", { v4: ["192.0.2.1", "203.0.113.7"] }, onlyV4)).toEqual([
      `address_other: example.com has A 192.0.2.1, it should be A 203.0.113.7, or an ALIAS (ANAME) record to ${target} where its DNS provider has those.`,
    ]);
    expect(sentences("www.example.com", { v4: ["192.0.2.1"] })).toEqual([
      `address_other: www.example.com has A 192.0.2.1, it should be CNAME ${target} or A 203.0.113.7 and AAAA 2001:db8::7.`,
    ]);
    expect(sentences("www.example.com", { v4: ["192.0.2.1"], aliases: ["old.host.example"] })).toEqual([
      `cname_other: www.example.com has CNAME old.host.example, it should be CNAME ${target} or A 203.0.113.7 and AAAA 2001:db8::7.`,
    ]);
    expect(sentences("www.example.com", { v4: ["192.0.2.1"], aliases: [target] }, onlyV4)).toEqual([
      `address_other: www.example.com has A 192.0.2.1, it should be CNAME ${target} or A 203.0.113.7.`,
    ]);
    expect(
      sentences("www.example.com", { v4: ["192.0.2.1"], v6: ["2001:db8::bad"], aliases: ["old.example"] }),
    ).toEqual([expect.stringContaining("cname_other: www.example.com has CNAME old.example")]);
    expect(sentences("www.example.com", { aliases: ["gone.example"] })[0]).toContain(
      "has CNAME gone.example, which has no address",
    );
    expect(sentences("www.example.com", {})[0]).toContain("address_missing: www.example.com has no address");
  });

  it("of IPv6 that lead elsewhere are wrong beside a right one of IPv4", () => {
    const seen = { v4: ["203.0.113.7"], v6: ["2001:db8::bad"] };
    expect(sentences("www.example.com", seen)[0]).toContain("It should be AAAA 2001:db8::7");
    expect(sentences("www.example.com", seen, onlyV4)[0]).toContain("Remove this record");
  });

  it("of a proxy are told as one, unless they are the installation's own", () => {
    for (const address of ["104.16.1.1", "172.67.1.1"])
      expect(sentences("www.example.com", { v4: [address] })[0]).toContain(
        `proxied: www.example.com has A ${address}, an address`,
      );
    expect(sentences("www.example.com", { v6: ["2606:4700::1"] })[0]).toContain("DNS only");
    expect(sentences("www.example.com", { v4: ["104.16.1.1"] }, { ...onlyV4, v4: ["104.16.1.1"] })).toEqual(
      [],
    );
  });

  it("say that the installation's own name has none", () => {
    expect(sentences("www.example.com", {}, { v4: [], v6: [], aliases: [] })[0]).toContain("target_missing");
  });

  it("lead here if one of them does", () => {
    expect(leadsHere({ v4: ["192.0.2.1", "203.0.113.7"], v6: [], aliases: [] }, wanted)).toBe(true);
    expect(leadsHere({ v4: ["192.0.2.1"], v6: [], aliases: [] }, wanted)).toBe(false);
  });
});

describe("CAA records", () => {
  const caa = (name: string, ...records: string[]) =>
    caaProblem(
      name,
      "example.com",
      records.map((text) => {
        const [flags = "", tag = "", ...value] = text.split(" ");
        return { flags: Number(flags), tag, value: value.join(" ") };
      }),
      ["letsencrypt.org"],
    )?.message ?? null;

  it("are looked for from the name upwards (RFC 8659)", () => {
    expect(caaNames("www.example.com")).toEqual(["www.example.com", "example.com", "com"]);
    expect(caaNames("*.example.com")).toEqual(["example.com", "com"]);
  });

  it.each([
    ["0 issue letsencrypt.org"],
    ["0 issue LetsEncrypt.org"],
    ["0 issue letsencrypt.org; validationmethods=http-01,dns-01"],
    ["0 iodef mailto:a@example.com"],
    ["0 issuewild other.example"],
    ["0 issue letsencrypt.org; validationmethods=dns-01, http-01"],
    ["0 issue letsencrypt.org; policy=ev"],
    ["0 unheard-of x"],
    ["128 issue letsencrypt.org"],
  ])("with %s allow a certificate", (record) => expect(caa("www.example.com", record)).toBeNull());

  it.each([
    ["0 issue ;"],
    ["0 issue "],
    ["0 issue other.example"],
    ["0 issue letsencrypt.org; validationmethods=dns-01"],
    ["0 issue letsencrypt.org; accounturi=https://acme.example/1"],
    ["128 unheard-of x"],
  ])("with %s forbid it, and the sentence names them", (record) => {
    expect(caa("www.example.com", record)).toContain("example.com has");
  });

  it("allow by any of them, and wildcards by their own", () => {
    expect(caa("www.example.com", "0 issue other.example", "0 issue letsencrypt.org")).toBeNull();
    expect(caa("*.example.com", "0 issue letsencrypt.org")).toBeNull();
    expect(caa("*.example.com", "0 issue letsencrypt.org", "0 issuewild ;")).toContain(
      'forbids our certificate authority to issue for *.example.com. Add CAA 0 issuewild "letsencrypt.org" there',
    );
    expect(caa("*.example.com", "0 issue other.example", "0 issue third.example")).toBe(
      'example.com has CAA 0 issue "other.example" and CAA 0 issue "third.example", which forbids our certificate authority to issue for *.example.com. Add CAA 0 issue "letsencrypt.org" there, or remove its CAA records.',
    );
  });
});

describe("the record of ownership", () => {
  const record = { type: "TXT", name: "_berth-challenge.example.com", value: "berth-verify=a" } as const;
  it("is right, missing or another, and hostile text is cut", () => {
    expect(proofProblem(record, ["x", "berth-verify=a"])).toBeNull();
    expect(proofProblem(record, [])?.code).toBe("proof_missing");
    expect(proofProblem(record, ["berth-verify=b"])?.message).toBe(
      "The TXT record at _berth-challenge.example.com has a different value, berth-verify=b. Set it to berth-verify=a.",
    );
    expect(proofProblem(record, ["y".repeat(100)])?.message).toContain(`${"y".repeat(100)}. Set it`);
    const other = proofProblem(record, ["y".repeat(5000)]);
    expect(other?.code).toBe("proof_other");
    expect(other?.message.length).toBeLessThan(400);
  });
});

describe("a domain's states", () => {
  it("begin with ownership, and only proof leads out of PENDING_VERIFICATION", () => {
    const leaving = Object.entries(domainEvents).filter(([, { from }]) =>
      (from as readonly string[]).includes("PENDING_VERIFICATION"),
    );
    expect(leaving.map(([name]) => name)).toEqual(["proved"]);
    for (const status of domainStatuses)
      expect(Object.values(domainEvents).some(({ to }) => to === status)).toBe(true);
  });

  it("are looked at less and less often, and a name in service every six hours", () => {
    const waits = Array.from({ length: 20 }, (_, looks) => untilNextLook("ERROR", looks, null));
    expect(waits).toEqual(waits.toSorted((a, b) => a - b));
    expect([waits[0], waits.at(-1)]).toEqual([60_000, 6 * 3_600_000]);
    expect(untilNextLook("ACTIVE", 1, null)).toBe(6 * 3_600_000);
    // One that nobody proves for a month.
    const pending = (days: number) => untilNextLook("PENDING_VERIFICATION", 0, days * 86_400_000);
    expect([30, 31].map(pending)).toEqual([60_000, 86_400_000]);
  });
});
