import { describe, expect, it } from "vitest";
import { AccountPatch } from "../../protocol/api/accounts.ts";
import { idOf, listQuery, text, wholeNumber } from "../../protocol/api/common.ts";
import { JobsQuery } from "../../protocol/api/console.ts";
import { CreditGrant, CreditPackagePatch } from "../../protocol/api/credits.ts";
import { DeviceStart } from "../../protocol/api/device.ts";
import { DomainName } from "../../protocol/api/domains.ts";
import { HostPatch } from "../../protocol/api/hosts.ts";
import { IngressChange } from "../../protocol/api/ingress.ts";
import { KeyCreate } from "../../protocol/api/keys.ts";
import { ChannelCreate, ChannelPatch } from "../../protocol/api/notifications.ts";
import { ClientMetadata, isSameRedirect, RedirectUri } from "../../protocol/api/oauth.ts";
import { PackPatch } from "../../protocol/api/packs.ts";
import { ProjectFile } from "../../protocol/api/project-file.ts";
import { AllowList, isIpv4Network, isNetwork, maxAllowed } from "../../protocol/api/public-access.ts";
import { SchedulePatch } from "../../protocol/api/schedules.ts";
import { ProfilePatch } from "../../protocol/api/self-service.ts";
import { BillingDetailsPatch, SettingsPatch } from "../../protocol/api/settings.ts";
import { SignUp } from "../../protocol/api/sign-in.ts";
import { DeployedSettings, SiteCreate, SiteSettings } from "../../protocol/api/sites.ts";
import { tools, readsOnly, type ToolName } from "../../protocol/api/tools.ts";
import { Volumes } from "../../protocol/api/volumes.ts";
import { notificationKinds } from "../../protocol/states.ts";

type Schema = { safeParse(value: unknown): { success: boolean; data?: unknown } };
const accepts = (schema: Schema, value: unknown) => schema.safeParse(value).success;
/** Each value with whether it is accepted, so that a failure names it. */
const verdicts = (schema: Schema, values: readonly unknown[]) =>
  values.map((value) => [value, accepts(schema, value)]);
const all = (values: readonly unknown[], isAccepted: boolean) => values.map((value) => [value, isAccepted]);

describe("a name that others read", () => {
  const client = (name: string) => ({ redirect_uris: ["https://a.example"], client_name: name });
  const named: [string, Schema, (name: string) => object][] = [
    ["a device", DeviceStart, (clientName) => ({ clientName })],
    ["a program", ClientMetadata, client],
    ["an API key", KeyCreate, (name) => ({ name })],
    [
      "a person who signs up",
      SignUp,
      (name) => ({ name, email: "a@example.com", password: "a long password" }),
    ],
    ["a person", ProfilePatch, (name) => ({ name })],
  ];

  it.each(named)("of %s cannot turn or hide what is written around it", (_, schema, of) => {
    const right = ["Editor", "Zoë’s laptop", "שלום", "👩‍🚀", "نمی‌خواهم"];
    const wrong = [
      "a\nb",
      "a\u2028b",
      "\u202eetirovaf",
      "a\u2066b",
      "a\u200fb",
      "a\u061cb",
      "\u200b",
      "a\u2060",
      " ",
    ];
    const verdict = (name: string) => [name, accepts(schema, of(name))];
    expect([...right, ...wrong].map(verdict)).toEqual([...all(right, true), ...all(wrong, false)]);
  });
});

describe("a change", () => {
  const patches: [string, Schema, object][] = [
    ["an account", AccountPatch, { role: "user" }],
    ["a credit package", CreditPackagePatch, { active: false }],
    ["a notification channel", ChannelPatch, { enabled: true }],
    ["a pack", PackPatch, { active: false }],
    ["billing details", BillingDetailsPatch, { country: "DE" }],
    ["a schedule", SchedulePatch, { enabled: false }],
    ["a host", HostPatch, { ipv6: null }],
    ["the ingress", IngressChange, { maintenance: null }],
    ["a site", SiteSettings, { port: 3000 }],
    ["a deployment", DeployedSettings, { port: 3000 }],
    ["the settings' brand", SettingsPatch, { brand: { name: "Harbour" } }],
    ["the settings' seller", SettingsPatch, { seller: { note: null } }],
    ["the settings' sign-up", SettingsPatch, { signUp: "closed" }],
  ];
  it.each(patches)("of %s names something, and nothing that is not known", (_, schema, change) => {
    expect(accepts(schema, change)).toBe(true);
    expect(accepts(schema, {})).toBe(false);
    expect(accepts(schema, { ...change, nothing: 1 })).toBe(false);
  });

  it("that names only parts without anything, or what is undefined, names nothing", () => {
    expect(accepts(SettingsPatch, { brand: {}, seller: {} })).toBe(false);
    expect(accepts(HostPatch, { action: undefined, ipv4: undefined })).toBe(false);
    expect(accepts(SchedulePatch, { enabled: undefined })).toBe(false);
    expect(accepts(SchedulePatch, { enabled: undefined, name: "nightly" })).toBe(true);
    expect(accepts(HostPatch, { action: undefined, ipv4: null })).toBe(true);
  });
});

describe("texts and numbers", () => {
  it("are text that every database and program can keep", () => {
    expect(verdicts(text, ["", "ü 🙂", "line\nline"])).toEqual(all(["", "ü 🙂", "line\nline"], true));
    expect(verdicts(text, ["a\0", "\0", "\ud83d", "a\udc00b"])).toEqual(
      all(["a\0", "\0", "\ud83d", "a\udc00b"], false),
    );
  });

  it("of an id are of its kind", () => {
    const [id, other] = [`acc_001k${"0".repeat(23)}`, `site_001k${"0".repeat(23)}`];
    expect(verdicts(idOf("account"), [id, other, "", `${id} `, 1, null, [id]])).toEqual([
      [id, true],
      ...all([other, "", `${id} `, 1, null, [id]], false),
    ]);
    expect(accepts(JobsQuery, { hostId: id })).toBe(false);
    expect(accepts(JobsQuery, { hostId: `host_001k${"0".repeat(23)}` })).toBe(true);
  });

  it("in a query are whole numbers in plain decimal, within their bounds", () => {
    const number = wholeNumber(1, 100);
    expect(["1", "7", "100"].map((value) => number.parse(value))).toEqual([1, 7, 100]);
    const refused = ["0", "101", "", " 1", "1 ", "+1", "-1", "01", "1.0", "1e1", "0x10", "٣", 1];
    expect(verdicts(number, refused)).toEqual(all(refused, false));
  });

  it("of a list's position are ids of its kind, long or short", () => {
    const query = listQuery("account");
    expect(query.parse({})).toEqual({ limit: 50 });
    expect(query.parse({ cursor: "acc_1", limit: "2" })).toEqual({ cursor: "acc_1", limit: 2 });
    const refused = ["site_1", "acc_", `acc_${"a".repeat(41)}`, "acc_A", "xacc_1", "acc_1x!"];
    expect(verdicts(query.shape.cursor, refused)).toEqual(all(refused, false));
  });
});

describe("a domain's name", () => {
  it.each([
    ["WWW.Example.COM", "www.example.com"],
    [" example.com ", "example.com"],
    ["example.com.", "example.com"],
    ["例え.テスト。", "xn--r8jz45g.xn--zckzah"],
    ["*.Bücher.example", "*.xn--bcher-kva.example"],
    ["xn--bcher-kva.example", "xn--bcher-kva.example"],
  ])("%j is kept as %s", (typed, kept) => expect(DomainName.parse(typed)).toBe(kept));

  it.each([
    ["", "localhost", "example", "*.", "*", "*.com", "a.*.example.com", "**.example.com", "*example.com"],
    ["127.0.0.1", "1.2.3.4", "0x7f.1", "[::1]", "example.com..", "..", ".example.com", "a..example.com"],
    [
      "example.com/path",
      "user@example.com",
      "example.com:80",
      "example.com?x",
      "example.com#x",
      "a b.example",
    ],
    [
      "ex%61mple.com",
      "a\\b.example",
      "<a>.example",
      "a|b.example",
      "a'b.example",
      'a"b.example',
      "{a}.example",
    ],
    ["-a.example", "a-.example", `${"a".repeat(64)}.example`, "exam℀ple.com", "a_b.example"],
  ])("is none of %j, %j, %j, %j, %j …", (...names) =>
    expect(verdicts(DomainName, names)).toEqual(all(names, false)),
  );
});

describe("a host's address", () => {
  it("is one that a machine can have", () => {
    const [right, wrong] = [
      ["203.0.113.7", "10.0.0.1", "1.0.0.0", "223.255.255.255"],
      ["0.0.0.0", "0.1.2.3", "224.0.0.1", "255.255.255.255", "203.0.113", "host.example"],
    ];
    const ipv4 = HostPatch.shape.ipv4;
    expect([...verdicts(ipv4, right), ...verdicts(ipv4, wrong)]).toEqual([
      ...all(right, true),
      ...all(wrong, false),
    ]);
    const [right6, wrong6] = [
      ["2001:db8::1", "fe80::1", "::1"],
      ["::", "::2", "ff02::1", "FF02::1", "203.0.113.7"],
    ];
    const ipv6 = HostPatch.shape.ipv6;
    expect([...verdicts(ipv6, right6), ...verdicts(ipv6, wrong6)]).toEqual([
      ...all(right6, true),
      ...all(wrong6, false),
    ]);
  });
});

describe("the ingress of a site", () => {
  const redirect = (to: string) => ({ redirects: [{ from: "/old", to }] });

  it("redirects to paths of its own and to addresses of the web, and to nothing that a browser reads otherwise", () => {
    const right = [
      "/new",
      "/new?a=b",
      "/",
      "https://example.com/a?b",
      "HTTP://example.com",
      "http://[::1]:8080/",
    ];
    const wrong = [
      ["", "new", "//example.com", "/\\example.com", "/a b", "/a#b", "/ü", "javascript:alert(1)"],
      [
        "ftp://example.com",
        "https://",
        "https:example.com",
        "https://example.com/a#b",
        "https://exa mple.com",
      ],
      ["https://user@example.com", "https://user:pw@example.com", "https://:pw@example.com"],
      [
        "https://example.com\\@evil.example",
        "https://example.com/\\",
        "https://ü.example",
        " https://example.com",
      ],
      ["xhttps://example.com", "https://example.com\n", "http://exa%zzmple.com"],
    ].flat();
    expect([...right, ...wrong].map((to) => [to, accepts(IngressChange, redirect(to))])).toEqual([
      ...all(right, true),
      ...all(wrong, false),
    ]);
  });

  it("sets headers that are the app's to set: each once, sixteen at most", () => {
    const headers = (named: object) => accepts(IngressChange, { headers: named });
    const many = (count: number) =>
      headers(Object.fromEntries(Array.from({ length: count }, (_, at) => [`X-A${at}`, "1"])));
    expect([headers({ "X-Frame-Options": "DENY" }), many(16), many(17)]).toEqual([true, true, false]);
    expect([headers({ "X-A": "1", "x-a": "2" }), headers({ "X-A": "1", "X-B": "1" })]).toEqual([false, true]);
    const reserved = ["Connection", "SET-COOKIE", "Berth-Site", "X-Forwarded-For", "Content-Length", "Host"];
    expect(reserved.filter((name) => headers({ [name]: "1" }))).toEqual([]);
    expect(["X Y", "", "X:Y"].filter((name) => headers({ [name]: "1" }))).toEqual([]);
  });

  it("is changed setting by setting: null clears, what is left out stays", () => {
    const change = { httpsOnly: null, stickySessions: true, basicAuth: null };
    expect(IngressChange.parse(change)).toEqual(change);
  });
});

describe("a network", () => {
  it.each([
    ["203.0.113.0/24", true],
    ["203.0.113.7", true],
    ["203.0.113.7/32", true],
    ["0.0.0.0/0", true],
    ["128.0.0.0/1", true],
    ["203.0.113.128/25", true],
    ["203.0.113.64/25", false],
    ["203.0.113.1/24", false],
    ["203.1.0.0/15", false],
    ["203.0.113.0/33", false],
    ["203.0.113.0/024", false],
    ["203.0.113.0/", false],
    ["203.0.113.0/-1", false],
    ["203.0.113.0/24/24", false],
    ["203.0.113.0/1e1", false],
    ["203.0.113", false],
    ["203.0.113.", false],
    ["203.0.113.256", false],
    ["203.0.113.07", false],
    ["203.0.113.0.0", false],
    ["/24", false],
    ["", false],
    ["::", true],
    ["::1", true],
    ["::/0", true],
    ["2001:db8::/32", true],
    ["2001:db8::1", true],
    ["2001:db8::/128", true],
    ["1:2:3:4:5:6:7:8", true],
    ["fe80::/10", true],
    ["2001:db8::/129", false],
    ["2001:db8::1/129", false],
    ["2001:db8::/31", true],
    ["2001:db9::/31", false],
    ["2001:db8::1/127", false],
    ["2001:db8:0:1::/63", false],
    ["2001:db8:0:100::/56", true],
    ["2001:DB8::", false],
    ["2001:0db8::", false],
    ["2001:db8:0:0:0:0:0:0", false],
    ["2001:db8", false],
    ["2001:db8::1::2", false],
    ["[::1]", false],
    ["::ffff:203.0.113.7", false],
    ["::g", false],
    ["abcd", false],
    ["12", false],
    [":", false],
  ])("%j: %s", (network, isOne) => expect(isNetwork(network)).toBe(isOne));

  it("is of IPv4 or IPv6", () =>
    expect(["203.0.113.0/24", "2001:db8::/32"].map(isIpv4Network)).toEqual([true, false]));

  it("is named once in a list, of 32 at most", () => {
    const list = (count: number) => Array.from({ length: count }, (_, at) => `203.0.113.${at}`);
    expect([accepts(AllowList, list(maxAllowed)), accepts(AllowList, list(maxAllowed + 1))]).toEqual([
      true,
      false,
    ]);
    expect(accepts(AllowList, ["::1", "203.0.113.7", "::1"])).toBe(false);
  });
});

describe("where a client of OAuth receives its code", () => {
  it("is https, its own computer, or a scheme of an app", () => {
    const right = [
      "https://app.example/cb",
      "http://localhost:1234/cb",
      "http://127.0.0.1/",
      "http://[::1]:1/",
    ];
    const wrong = [
      ["http://app.example/cb", "http://localhost.example/", "http://127.0.0.10/", "https://app.example/#a"],
      ["https://user@app.example/", "https://:pw@app.example/", "javascript:alert(1)", "DATA:text/html,a"],
      ["file:///etc/passwd", "about:blank", "ws://app.example/", "wss://app.example/", "/cb", "", "https://"],
      // What `URL` strips, or leaves out in between.
      [
        " javascript:alert(1)",
        "\tdata:text/html,a",
        "\njavascript:1",
        "java\nscript:1",
        "\u0000javascript:1",
      ],
      [" https://app.example/cb", "https://app.example/cb ", "https://app.example/c b"],
    ].flat();
    const apps = ["com.example.app:/cb", "example-app://cb", "my-data:x"];
    expect(verdicts(RedirectUri, [...right, ...apps, ...wrong])).toEqual([
      ...all([...right, ...apps], true),
      ...all(wrong, false),
    ]);
  });

  it.each([
    ["https://app.example/cb", "https://app.example/cb", true],
    ["https://app.example/cb", "https://app.example:444/cb", false],
    ["https://localhost/cb", "https://localhost:444/cb", false],
    ["http://127.0.0.1:1/cb", "http://127.0.0.1:2/cb", true],
    ["http://127.0.0.1/cb", "http://127.0.0.1:2/cb", true],
    ["http://localhost:1/cb", "http://localhost/cb", true],
    ["http://127.0.0.1:1/cb", "http://127.0.0.1:1/other", false],
    ["http://127.0.0.1:1/cb", "http://localhost:1/cb", false],
    ["http://127.0.0.1:1/cb", "https://127.0.0.1:1/cb", false],
    ["http://127.0.0.1:1/cb", "http://127.0.0.1:1/cb?a", false],
    ["http://app.example:1/cb", "http://app.example:2/cb", false],
    ["example-app://cb", "example-app://other", false],
  ])("registered as %s and asked for as %s is the same: %s", (registered, asked, isSame) =>
    expect(isSameRedirect(registered, asked)).toBe(isSame),
  );
});

describe("what the operator sets", () => {
  const brand = (value: object) => accepts(SettingsPatch, { brand: value });
  const seller = (value: object) => accepts(SettingsPatch, { seller: value });

  it("is a logo without scripts and without anything from elsewhere", () => {
    const svg = (inside: string) => `<svg xmlns="http://www.w3.org/2000/svg">${inside}</svg>`;
    const right = [
      svg(""),
      `${svg('<path fill="url(#a)"/><use href="#a"/>')}\n`,
      svg(`<image href='data:image/png;base64,AA=='/>`),
      "<svg>\n<path/>\n</svg>",
      svg(`<use href= "#a" fill='url( "#b")'/><use href=#a fill="url(#b)"/>`),
      "data:image/png;base64,iVBORw0KGgo",
      "data:image/png;base64,iVBORw0KGgo=",
    ];
    const wrong = [
      ...["<script>1</script>", "<SCRIPT/>", "<foreignObject/>", "<iframe/>", "<!-- a -->", "<?a?>"].map(svg),
      ...[
        '<g onload = "a()"/>',
        '<g onload="a()"/>',
        '<a href="javascript:a()"/>',
        '<image href="https://a.example/a.png"/>',
      ].map(svg),
      ...["<style>@import 'a'</style>", '<path fill="url(https://a.example)"/>', '<image src="//a"/>'].map(
        svg,
      ),
      "<svg",
      "<svgx></svg>",
      ` ${svg("")}`,
      `${svg("")}<p>`,
      "data:image/png;base64,",
      "data:image/png;base64,<script>",
      "data:image/png;base64,AA===",
      "data:image/svg+xml;base64,AA==",
      "xdata:image/png;base64,AA==",
      `<svg>${" ".repeat(64 * 1024)}</svg>`,
    ];
    expect([...right, ...wrong].map((logo) => [logo, brand({ logo })])).toEqual([
      ...all(right, true),
      ...all(wrong, false),
    ]);
  });

  it("is a colour on which white text is read, and a name of one line", () => {
    const accents = ["#0f766e", "#0F766E", "#767676", "#777777", "#ffffff", "#0f766", "0f766e", "#0f766e0"];
    expect(accents.map((accent) => brand({ accent }))).toEqual([true, true, true, ...Array(5).fill(false)]);
    expect(["Berth", " Berth ", "x".repeat(60)].map((name) => brand({ name }))).toEqual([true, true, true]);
    expect(["", " ", "a\nb", "a\rb", "x".repeat(61)].map((name) => brand({ name }))).toEqual(
      Array(5).fill(false),
    );
    const links = [
      "https://a.example/terms",
      "http://a.example",
      "javascript:1",
      "a.example",
      "xhttps://a.example",
    ];
    expect(links.map((termsUrl) => brand({ termsUrl }))).toEqual([true, false, false, false, false]);
  });

  it("is an address of six lines at most, and a tax of two decimals", () => {
    const lines = (count: number) => Array(count).fill("line").join("\n");
    expect(
      [lines(1), lines(6), lines(7), " ", "x".repeat(401)].map((address) => seller({ address })),
    ).toEqual([true, true, false, false, false]);
    const percents = [19, 7.7, 8.25, 0.01, 100, 29.99, 0, -1, 100.01, 8.255, 0.001, 19.999];
    expect(percents.map((percent) => [percent, seller({ tax: { name: "VAT", percent } })])).toEqual([
      ...all(percents.slice(0, 6), true),
      ...all(percents.slice(6), false),
    ]);
  });

  it("is a VAT id, kept without what people write between", () => {
    const kept = (vatId: string) => BillingDetailsPatch.safeParse({ vatId }).data?.vatId;
    expect(["DE 123.456-789", "atu12345678", "NL00"].map(kept)).toEqual([
      "DE123456789",
      "ATU12345678",
      "NL00",
    ]);
    expect(["123456789", "D1234", "DE1", `DE${"1".repeat(14)}`, "DE12_34", ""].map(kept)).toEqual(
      Array(6).fill(undefined),
    );
  });
});

describe("what belongs together", () => {
  it("a grant names its account or its address, not both", () => {
    const [accountId, email, amount] = ["acc_1", "ada@example.com", 5];
    const grants = [{ accountId }, { email }, { accountId, email }, {}];
    expect(grants.map((grant) => accepts(CreditGrant, { ...grant, amount }))).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });

  it("a channel names each kind once", () => {
    const channel = (...kinds: string[]) => accepts(ChannelCreate, { type: "mail", kinds });
    const [kind] = notificationKinds;
    expect([channel(kind), channel(kind, kind), channel()]).toEqual([true, false, false]);
  });

  it("a registry's user has a password, and a password a user", () => {
    const site = (login: object) =>
      accepts(SiteCreate, { name: "shop", deployType: "image", image: "nginx", ...login });
    const [registryUsername, registryPassword] = ["ada", "secret"];
    expect(
      [{}, { registryUsername, registryPassword }, { registryUsername }, { registryPassword }].map(site),
    ).toEqual([true, true, false, false]);
  });

  it("a volume has a name and a place that no other of the site has", () => {
    const volumes = (...of: [string, string][]) =>
      accepts(
        Volumes,
        of.map(([name, mountPath]) => ({ name, mountPath })),
      );
    expect([
      volumes(["a", "/a"], ["b", "/b"]),
      volumes(["a", "/a"], ["a", "/b"]),
      volumes(["a", "/a"], ["b", "/a"]),
    ]).toEqual([true, false, false]);
  });

  it("a project is an image, or a repository with its branch and folder", () => {
    const source = (of: object) => accepts(ProjectFile, { name: "shop", source: of });
    expect([source({ image: "nginx" }), source({}), source({ branch: "main", rootDir: "app" })]).toEqual([
      true,
      true,
      true,
    ]);
    expect([source({ image: "nginx", branch: "main" }), source({ image: "nginx", rootDir: "app" })]).toEqual([
      false,
      false,
    ]);
    expect(source({ image: "nginx", branch: undefined })).toBe(true);
  });

  it("a tool that must be confirmed, or whose verb changes something, does more than read", () => {
    const names = Object.keys(tools) as ToolName[];
    const changing =
      /^(?:add|cancel|change|create|delete|deploy|remove|restart|restore|rotate|run_command|set|start|stop|update)_/;
    expect(names.filter((name) => readsOnly(name) && changing.test(name))).toEqual([]);
    expect(names.filter((name) => readsOnly(name) && "destructive" in tools[name])).toEqual([]);
    expect((["list_sites", "get_site_logs"] as ToolName[]).map(readsOnly)).toEqual([true, true]);
  });
});
