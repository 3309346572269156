import { afterAll, describe, expect, it } from "vitest";
import type { Invoice } from "../../protocol/api/invoices.ts";
import { contrastWithWhite } from "../../protocol/contrast.ts";
import { contextOf } from "../../worker/compose.ts";
import { publicSettings } from "../../worker/services/settings/read.ts";
import { account, api, bindings, call, createSite, operator } from "./service.ts";

const ctx = contextOf(bindings, { type: "system" }, () => undefined);
const invoiceOf = async (key: string, id: string) => (await api<Invoice>(key, "GET", `/invoices/${id}`)).body;
/** The texts of a PDF, which are hexadecimal. */
const textsOf = async (token: string) =>
  [...(await (await call(`/invoice/${token}/pdf`)).text()).matchAll(/<([0-9a-f]*)> Tj/g)].map(
    ([, hex = ""]) => Buffer.from(hex, "hex").toString("latin1"),
  );
const buyer = {
  name: "Käufer AG",
  address: "Seestrasse 7\n8001 Zürich",
  country: "CH",
  vatId: "CHE123456789",
};
const seller = {
  name: "Acme GmbH",
  address: "Hafenstrasse 1\n20457 Hamburg",
  vatId: "DE 123.456-789",
  email: "billing@acme.example",
  tax: { name: "VAT", percent: 19 },
  note: "Thank you.",
};

afterAll(() => bindings.DB.prepare("DELETE FROM installation_settings").run());

describe("the installation's settings", () => {
  it("are the operator's: others neither read nor change them", async () => {
    const key = await account();
    expect((await api(key, "GET", "/settings")).status).toBe(403);
    expect((await api(key, "PATCH", "/settings", { brand: { name: "Mine" } })).status).toBe(403);
  });

  it("change field by field, show at once, and return to a default by null", async () => {
    const by = await operator();
    await bindings.DB.prepare("DELETE FROM installation_settings").run();
    expect((await api(by, "GET", "/settings")).body).toMatchObject({
      brand: { name: "Berth" },
      updatedAt: null,
    });
    expect((await publicSettings(ctx)).brand.name).toBe("Berth");
    await api(by, "PATCH", "/settings", { brand: { name: "Acme Cloud", accent: "#0f766e" } });
    const { status, body } = await api(by, "PATCH", "/settings", { brand: { accent: null }, seller });
    expect([status, body]).toEqual([
      200,
      expect.objectContaining({
        brand: expect.objectContaining({ name: "Acme Cloud", accent: null, logo: null }) as object,
        seller: { ...seller, vatId: "DE123456789" },
      }),
    ]);
    expect((await api(by, "GET", "/settings")).body).toEqual(body);
    expect((await publicSettings(ctx)).brand.name).toBe("Acme Cloud");
    const unnamed = await api(by, "PATCH", "/settings", { brand: { name: null } });
    expect([unnamed.status, unnamed.body]).toMatchObject([200, { brand: { name: "Berth" } }]);
  });

  const svg = (inside: string) => `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1">${inside}</svg>`;
  it.each([
    { brand: { logo: svg('<path d="M0 0h1v1z"/><use href="#a"/><rect fill="url(#b)"/>') } },
    { brand: { logo: "data:image/png;base64,iVBORw0KGgo=" } },
    { brand: { termsUrl: "https://acme.example/terms" } },
    { seller: { vatId: "ATU12345678" } },
  ])("take %j", async (patch) => {
    expect((await api(await operator(), "PATCH", "/settings", patch)).status).toBe(200);
  });

  it.each([
    {},
    { brand: {} },
    { brand: { name: "" } },
    { brand: { name: "two\nlines" } },
    { brand: { accent: "#ffee00" } },
    { brand: { accent: "teal" } },
    { brand: { termsUrl: "http://acme.example/" } },
    { brand: { termsUrl: "javascript:alert(1)" } },
    { brand: { logo: "https://acme.example/logo.svg" } },
    { brand: { logo: svg("<script>alert(1)</script>") } },
    { brand: { logo: svg('<path onload="alert(1)"/>') } },
    { brand: { logo: svg('<image href="https://elsewhere.example/x.png"/>') } },
    { brand: { logo: svg('<a xlink:href="javascript:alert(1)"/>') } },
    { brand: { logo: svg("<style>@import 'https://elsewhere.example'</style>") } },
    { brand: { logo: svg('<rect fill="url(https://elsewhere.example#a)"/>') } },
    { brand: { logo: svg("<foreignObject/>") } },
    { brand: { logo: "data:text/html;base64,AAAA" } },
    { seller: { vatId: "12" } },
    { seller: { address: "1\n2\n3\n4\n5\n6\n7" } },
    { seller: { email: "nobody" } },
    { seller: { tax: { name: "VAT", percent: 0 } } },
    { seller: { tax: { name: "VAT", percent: 19.125 } } },
    { seller: { tax: { name: "", percent: 19 } } },
    { seller: { tax: { percent: 19 } } },
    { unknown: 1 },
  ])("refuse %j", async (patch) => {
    expect((await api(await operator(), "PATCH", "/settings", patch)).status).toBe(400);
  });
});

describe("an invoice", () => {
  it("names seller and buyer as they were when it was issued, in its record and its PDF", async () => {
    const [by, key] = [await operator(), await account()];
    await api(by, "PATCH", "/settings", { brand: { name: "Acme Cloud" }, seller });
    expect((await api(key, "GET", "/billing/details")).body).toEqual({
      name: null,
      address: null,
      country: null,
      vatId: null,
    });
    const anonymous = await createSite(key);
    expect((await api(key, "PATCH", "/billing/details", buyer)).body).toEqual(buyer);
    const { invoiceId, invoiceToken } = await createSite(key);
    await api(by, "PATCH", "/settings", { brand: { name: "Other" }, seller: { name: "Other Ltd" } });
    await api(key, "PATCH", "/billing/details", { name: "Someone else", vatId: null });
    const parties = {
      brandName: "Acme Cloud",
      seller: { ...seller, vatId: "DE123456789" },
      buyer,
    };
    expect((await invoiceOf(key, invoiceId)).parties).toEqual(parties);
    expect((await invoiceOf(key, anonymous.invoiceId)).parties).toEqual({ ...parties, buyer: null });
    const texts = await textsOf(invoiceToken);
    for (const said of [
      "Acme Cloud",
      "Acme GmbH",
      "Hafenstrasse 1",
      "20457 Hamburg",
      "VAT DE123456789",
      "billing@acme.example",
      "Billed to",
      "Käufer AG",
      "8001 Zürich",
      "CH",
      "VAT CHE123456789",
      "Thank you.",
    ])
      expect(texts).toContain(said);
    expect(await textsOf(anonymous.invoiceToken)).not.toContain("Billed to");
    const { body: credits } = await api<{ invoiceId: string }>(key, "POST", "/credits/purchase", {
      packageId: "cpk_001k0000000000000000000001",
    });
    expect((await invoiceOf(key, credits.invoiceId)).parties).toMatchObject({
      brandName: "Other",
      seller: { name: "Other Ltd" },
      buyer: { name: "Someone else", vatId: null, country: "CH" },
    });
  });

  it("prints names, addresses and the note in full, however long they are, below each other on its page", async () => {
    const [by, key] = [await operator(), await account()];
    const long = (word: string, count: number) => Array.from({ length: count }, (_, n) => word + n).join(" ");
    const said = {
      brand: { name: long("Harbour", 6) },
      seller: {
        name: long("Betriebsgesellschaft", 7),
        address: [1, 2, 3, 4, 5, 6].map((line) => long(`Strasse${line}`, 5)).join("\n"),
        note: `${long("Steuerschuldnerschaft", 14)}\nIBAN ${"0".repeat(120)}`,
      },
    };
    const details = { name: long("Genossenschaft", 10), address: long("Hintereingang", 10), country: "CH" };
    expect((await api(by, "PATCH", "/settings", said)).status).toBe(200);
    expect((await api(key, "PATCH", "/billing/details", details)).status).toBe(200);
    const name = "s".repeat(63);
    const { invoiceToken } = await createSite(key, { name });
    await api(by, "PATCH", "/settings", {
      brand: { name: null },
      seller: { name: null, address: null, note: null },
    });
    const words = (text: string) => text.replaceAll(/\s/g, "");
    const printed = words((await textsOf(invoiceToken)).join(""));
    for (const text of [said.brand.name, ...Object.values(said.seller), ...Object.values(details), name])
      expect(printed).toContain(words(text));
    const file = await (await call(`/invoice/${invoiceToken}/pdf`)).text();
    const places = [...file.matchAll(/ ([\d.]+) ([\d.]+) Td </g)].map(([, x, y]) => [Number(x), Number(y)]);
    expect(Math.min(...places.map(([, y = 0]) => y))).toBeGreaterThan(20);
    const inColumn = places.filter(([x = 0]) => x >= 320).map(([, y]) => y);
    expect(new Set(inColumn).size).toBe(inColumn.length);
  });

  it("has all of it on its page, where everything is as long and as wide as it may be", async () => {
    const [by, key] = [await operator(), await account()];
    const address = Array.from({ length: 6 }, (_, at) => String(at) + "W".repeat(64)).join("\n");
    const note = Array.from({ length: 20 }, (_, at) => "W".repeat(23) + String.fromCodePoint(65 + at)).join(
      "\n",
    );
    const said = {
      name: "W".repeat(200),
      address,
      vatId: `DE${"W".repeat(13)}`,
      email: `${"w".repeat(60)}@${Array.from({ length: 3 }, () => "w".repeat(60)).join(".")}.example`,
      tax: { name: "W".repeat(30), percent: 19.25 },
      note,
    };
    expect((await api(by, "PATCH", "/settings", { seller: said })).status).toBe(200);
    const details = { name: "M".repeat(200), address, country: "DE", vatId: said.vatId };
    expect((await api(key, "PATCH", "/billing/details", details)).status).toBe(200);
    const { invoiceToken } = await createSite(key, { name: "w".repeat(63) });
    const none = { name: null, address: null, vatId: null, email: null, tax: null, note: null };
    await api(by, "PATCH", "/settings", { seller: none });
    const file = await (await call(`/invoice/${invoiceToken}/pdf`)).text();
    const printed = [...file.matchAll(/([\d.]+) Tf ([\d.]+) (-?[\d.]+) Td <([0-9a-f]*)> Tj/g)].map(
      ([, size, x, y, hex = ""]) => ({
        size: Number(size),
        x: Number(x),
        y: Number(y),
        text: Buffer.from(hex, "hex").toString("latin1"),
      }),
    );
    const texts = printed.map(({ text }) => text);
    expect(texts).toEqual(expect.arrayContaining(["Total", `includes 19.25% ${said.tax.name}`]));
    for (const text of [said.name, said.email, details.name, ...`${address}\n${note}`.split("\n")])
      expect(texts.join("")).toContain(text);
    for (const { y } of printed) expect(y).toBeGreaterThan(20);
    for (const { y } of printed) expect(y).toBeLessThan(842 - 20);
    // No line covers the one above it.
    const column = printed.filter(({ x }) => x === 320);
    for (const [at, { y, size }] of column.slice(1).entries())
      expect((column[at]?.y ?? 0) - y).toBeGreaterThanOrEqual(size);
  });

  it("names the tax that its price includes, at the rate when it was issued; what is paid stays the same", async () => {
    const [by, key] = [await operator(), await account()];
    await api(by, "PATCH", "/settings", { seller: { tax: null } });
    const before = await createSite(key);
    await api(by, "PATCH", "/settings", { seller: { tax: { name: "MWSt", percent: 7.7 } } });
    const { invoiceId, invoiceToken } = await createSite(key);
    await api(by, "PATCH", "/settings", { seller: { tax: { name: "MWSt", percent: 8.1 } } });
    const taxed = await invoiceOf(key, invoiceId);
    expect(taxed).toMatchObject({
      amountCents: 500,
      tax: { name: "MWSt", percent: 7.7, amountCents: 36 },
    });
    expect(await textsOf(invoiceToken)).toContain("includes 7.7% MWSt");
    const page = await call(`/invoice/${invoiceToken}`, { headers: { Accept: "text/html" } });
    expect(await page.text()).toMatch(/includes 7\.7% MWSt<\/td><td class="number">\$0\.36/);
    expect(await invoiceOf(key, before.invoiceId)).toMatchObject({ amountCents: 500, tax: null });
    expect(await textsOf(before.invoiceToken)).not.toContain("MWSt");
  });

  it("has details of its own account alone", async () => {
    const [key, stranger] = [await account(), await account()];
    await api(key, "PATCH", "/billing/details", buyer);
    const { invoiceId } = await createSite(stranger);
    expect((await invoiceOf(stranger, invoiceId)).parties?.buyer).toBeNull();
    for (const patch of [
      {},
      { name: "" },
      { country: "Germany" },
      { vatId: "x" },
      { name: "a\0" },
      { other: 1 },
    ])
      expect([patch, (await api(key, "PATCH", "/billing/details", patch)).status]).toEqual([patch, 400]);
  });
});

it("contrast is as WCAG computes it", () => {
  expect(contrastWithWhite("#ffffff")).toBeCloseTo(1, 5);
  expect(contrastWithWhite("#000000")).toBeCloseTo(21, 5);
  expect(contrastWithWhite("#767676")).toBeCloseTo(4.54, 2);
});
