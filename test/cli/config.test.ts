import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { configFile, readConfig, siteUrlOf, writeConfig } from "../../cli/config.ts";
import { connectionOf } from "../../cli/context.ts";
import { repositoryAddress } from "../../cli/git.ts";
import { sinceTime } from "../../cli/commands/logs.ts";
import { opener } from "../../cli/open.ts";
import { fields, safe, table } from "../../cli/terminal.ts";

const folder = mkdtempSync(join(tmpdir(), "berth-cli-"));
afterAll(() => rmSync(folder, { recursive: true }));

it.each([
  ["linux", {}, "/home/ada", "/home/ada/.config/berth/config.json"],
  ["linux", { XDG_CONFIG_HOME: "/cfg" }, "/home/ada", "/cfg/berth/config.json"],
  ["linux", { XDG_CONFIG_HOME: "relative" }, "/home/ada", "/home/ada/.config/berth/config.json"],
  ["darwin", {}, "/Users/ada", "/Users/ada/.config/berth/config.json"],
  [
    "win32",
    { APPDATA: "C:\\Users\\ada\\AppData\\Roaming" },
    "C:\\Users\\ada",
    "C:\\Users\\ada\\AppData\\Roaming\\berth\\config.json",
  ],
  ["win32", {}, "C:\\Users\\ada", "C:\\Users\\ada\\AppData\\Roaming\\berth\\config.json"],
] as const)("on %s with %j the profiles are where that system keeps them", (platform, env, home, file) => {
  expect(configFile({ platform, env, home })).toBe(file);
});

it("the file with keys is readable by its owner only, and no other file is left", () => {
  const file = join(folder, "deep", "config.json");
  const config = { current: "default", profiles: { default: { url: "https://b.example", token: "sk_1" } } };
  writeConfig(file, { current: "x", profiles: {} });
  writeConfig(file, config);
  expect(readConfig(file)).toEqual(config);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(statSync(join(folder, "deep")).mode & 0o777).toBe(0o700);
  expect(readdirSync(join(folder, "deep"))).toEqual(["config.json"]);
});

it.each(["", "{", "[]", '{"current":"a"}', '{"current":"a","profiles":{"a":{}}}'])(
  "a damaged file (%j) is refused, not replaced",
  (text) => {
    const file = join(folder, "damaged.json");
    writeFileSync(file, text);
    expect(() => readConfig(file)).toThrow("is damaged");
    expect(readFileSync(file, "utf8")).toBe(text);
  },
);

it.each([
  ["https://b.example", "https://b.example"],
  ["b.example", "https://b.example"],
  ["https://b.example/", "https://b.example"],
  ["http://127.0.0.1:8787/api/v1", "http://127.0.0.1:8787"],
])("%s is the service at %s", (typed, url) => expect(siteUrlOf(typed)).toBe(url));
it.each([
  "",
  "https://",
  "ftp://b.example",
  "https://ada:pw@b.example",
  "https://b.example/path",
  "https://b.example/?x",
  "a b",
])("%j is not an address of a service", (typed) =>
  expect(() => siteUrlOf(typed)).toThrow("is not the address"),
);

it.each([
  "http://b.example",
  "http://10.0.0.5:8787",
  "http://localhost.b.example",
  "http://127.0.0.1.b.example",
])("%s is refused, as a key would be sent in clear text", (typed) =>
  expect(() => siteUrlOf(typed)).toThrow("is not encrypted"),
);
it.each(["http://localhost:8787", "http://berth.localhost", "http://[::1]:8787"])(
  "%s is on this computer, and needs no encryption",
  (typed) => expect(siteUrlOf(typed)).toBe(typed),
);

const config = {
  current: "default",
  profiles: {
    default: { url: "https://a.example", token: "sk_a" },
    work: { url: "https://w.example", token: "sk_w" },
  },
};
it("options come before variables, and these before the profile", () => {
  expect(connectionOf({ color: true }, {}, config)).toMatchObject({
    url: "https://a.example",
    token: "sk_a",
  });
  expect(connectionOf({ color: true, profile: "work" }, {}, config)).toMatchObject({ token: "sk_w" });
  expect(connectionOf({ color: true }, { BERTH_PROFILE: "work", BERTH_TOKEN: "sk_e" }, config)).toMatchObject(
    { url: "https://w.example", token: "sk_e" },
  );
  expect(connectionOf({ color: true, token: "sk_o" }, { BERTH_TOKEN: "sk_e" }, config)).toMatchObject({
    token: "sk_o",
  });
});
it("the key of a profile is not sent to another service", () => {
  expect(connectionOf({ color: true, url: "https://evil.example" }, {}, config).token).toBeUndefined();
  expect(connectionOf({ color: true }, { BERTH_URL: "https://evil.example" }, config).token).toBeUndefined();
});
it("--profile comes before BERTH_URL and BERTH_TOKEN: what is meant for one service reaches no other", () => {
  const env = { BERTH_URL: "https://e.example", BERTH_TOKEN: "sk_e", BERTH_PROFILE: "default" };
  expect(connectionOf({ color: true, profile: "work" }, env, config)).toMatchObject({
    profileName: "work",
    url: "https://w.example",
    token: "sk_w",
  });
  expect(() => connectionOf({ color: true, profile: "wrok" }, env, config)).toThrow(
    "There is no profile wrok",
  );
  const signedOut = { ...config, profiles: { ...config.profiles, work: { url: "https://w.example" } } };
  expect(connectionOf({ color: true, profile: "work" }, env, signedOut).token).toBeUndefined();
  expect(
    connectionOf({ color: true, profile: "work", url: "https://o.example", token: "sk_o" }, env, config),
  ).toMatchObject({ url: "https://o.example", token: "sk_o" });
});
it.each(["__proto__", "constructor"])("a profile named %s is not one that every object has", (profile) => {
  expect(() => connectionOf({ color: true, profile }, {}, config)).toThrow("There is no profile");
});

it.each([
  ["https://github.com/owner/repo.git", "github.com/owner/repo.git"],
  ["https://ada:token@github.com/owner/repo", "github.com/owner/repo"],
  ["https://github.com/owner/repo/", "github.com/owner/repo"],
  ["git@github.com:owner/repo.git", "github.com/owner/repo.git"],
  ["ssh://git@git.example:2222/group/sub/repo.git", "git.example/group/sub/repo.git"],
  ["http://127.0.0.1:9000/e2e/a.git", "127.0.0.1:9000/e2e/a.git"],
  // As Berth itself writes an address: not one to be read anew.
  ["127.0.0.1:9000/e2e/a.git", null],
  ["/srv/git/repo.git", null],
  ["file:///srv/git/repo.git", null],
])("the remote %s is the repository %s", (remote, address) =>
  expect(repositoryAddress(remote)).toBe(address),
);

it("a time in the past is counted from now", () => {
  const now = Date.parse("2026-11-21T12:00:00Z");
  expect(sinceTime("15m", now)).toBe("2026-11-21T11:45:00.000Z");
  expect(sinceTime("2026-11-20", now)).toBe("2026-11-20T00:00:00.000Z");
  expect(() => sinceTime("yesterday", now)).toThrow("is not a time");
});

it("what others wrote cannot move the cursor, clear the screen or turn text around", () => {
  expect(safe("a\u001b[2Jb\u001b]0;title\u0007c\rd\u202ee\u009bKf\tg")).toBe("abcdef\tg");
});

function inColumns(columns: number | undefined, show: () => string): string {
  const before = { isTTY: process.stdout.isTTY, columns: process.stdout.columns };
  Object.assign(process.stdout, { isTTY: columns !== undefined, columns });
  try {
    return show();
  } finally {
    Object.assign(process.stdout, before);
  }
}

it.each([
  [29, "NAME       STATUS  ID\nshop 商店  LIVE    id_1234567"],
  [28, "NAME       STATUS\nshop 商店  LIVE\n  id id_1234567"],
  [12, "NAME\nshop 商店\n  status LIVE\n  id id_1234567"],
  [undefined, "NAME       STATUS  ID\nshop 商店  LIVE    id_1234567"],
])(
  "in a terminal of %s columns the last columns of a table go below the first, whole and with their names",
  (columns, text) => {
    const row = { name: "shop 商店", status: "LIVE", id: "id_1234567" };
    const shown = inColumns(columns, () =>
      table([row], { name: (one) => one.name, status: (one) => one.status, id: (one) => one.id }, ""),
    );
    expect(shown).toBe(text);
  },
);

it.each([
  [22, "Site    shop id_1\nDomain  www.shop.test\n        VERIFIED"],
  [undefined, "Site    shop id_1\nDomain  www.shop.test VERIFIED"],
])("in a terminal of %s columns a long value goes on below where it began", (columns, text) =>
  expect(
    inColumns(columns, () => fields({ Site: "shop id_1", Domain: "www.shop.test VERIFIED", Problem: null })),
  ).toBe(text),
);

it.each([
  ["darwin", "open"],
  ["win32", "rundll32"],
  ["linux", "xdg-open"],
] as const)("on %s a page is opened by %s, with the address as one argument", (platform, program) => {
  const url = "https://b.example/device?code=A&B|calc";
  const [name, args] = opener(platform, url);
  expect([name, args.at(-1)]).toEqual([program, expect.stringContaining(url)]);
});
