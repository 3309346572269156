import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import {
  changeConfig,
  configFile,
  readConfig,
  requireWritable,
  siteUrlOf,
  type Config,
} from "../../cli/config.ts";
import { connectionOf } from "../../cli/context.ts";
import { repositoryAddress } from "../../cli/git.ts";
import { sinceTime } from "../../cli/commands/logs.ts";
import { opener } from "../../cli/open.ts";
import { shown } from "../../cli/shown.ts";
import { duration, fields, safe, size, table } from "../../cli/terminal.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const folder = temporaryFolder();

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

it("the file with keys is readable by its owner only, and no other file is left", async () => {
  const file = join(folder, "deep", "config.json");
  const config = { current: "default", profiles: { default: { url: "https://b.example", token: "sk_1" } } };
  await changeConfig(file, () => ({ current: "x", profiles: {} }));
  await changeConfig(file, () => config);
  expect(readConfig(file)).toEqual(config);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(statSync(join(folder, "deep")).mode & 0o777).toBe(0o700);
  expect(readdirSync(join(folder, "deep"))).toEqual(["config.json"]);
});

const named = (name: string) => ({ current: name, profiles: { [name]: { url: "https://b.example" } } });
const adding = (name: string) => (latest: Config) => ({
  ...latest,
  profiles: { ...latest.profiles, ...named(name).profiles },
});

it("whoever changes the file while another does waits for it, and loses nothing of what that one wrote", async () => {
  const file = join(folder, "shared", "config.json");
  await changeConfig(file, () => named("first"));
  mkdirSync(`${file}.lock`);
  const changes = ["second", "third"].map((name) => changeConfig(file, adding(name)));
  expect(await Promise.race([...changes, delay(50, "waits")])).toBe("waits");
  writeFileSync(file, JSON.stringify(adding("other")(readConfig(file))));
  rmdirSync(`${file}.lock`);
  await Promise.all(changes);
  expect(Object.keys(readConfig(file).profiles).toSorted()).toEqual(["first", "other", "second", "third"]);
  expect(readdirSync(join(folder, "shared"))).toEqual(["config.json"]);
});

it("a lock that a run left behind when it crashed stops nobody for long", async () => {
  const file = join(folder, "crashed", "config.json");
  await changeConfig(file, () => named("first"));
  mkdirSync(`${file}.lock`);
  await changeConfig(file, adding("second"));
  expect(Object.keys(readConfig(file).profiles)).toEqual(["first", "second"]);
  expect(readdirSync(join(folder, "crashed"))).toEqual(["config.json"]);
});

it("a change that fails leaves the file and no lock", async () => {
  const file = join(folder, "failing", "config.json");
  await changeConfig(file, () => named("first"));
  const failing = changeConfig(file, () => {
    throw new Error("enough");
  });
  await expect(failing).rejects.toThrow("enough");
  expect(readdirSync(join(folder, "failing"))).toEqual(["config.json"]);
});

it("a place where the file cannot be written is refused before it is needed, and a good one is left as it was", () => {
  const place = join(folder, "nobody", "has", "made");
  requireWritable(join(place, "config.json"));
  expect(existsSync(join(folder, "nobody"))).toBe(false);
  expect(() => requireWritable("/proc/berth/config.json")).toThrow(
    "/proc/berth/config.json cannot be written",
  );
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
  // JavaScript reads the last three as days of 2001 and 1990.
  for (const text of ["yesterday", "2026-13-01", "10", "yesterday 10", "90"])
    expect(() => sinceTime(text, now), text).toThrow("is not a time");
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

it("an answer's fields are named by the words of their names", () =>
  expect(
    shown({ accounts: { newInAWeek: 2 }, signInWithGitHub: true, accountEmail: "a@b.example", sizeMb: 1 }),
  ).toBe(
    "accounts new in a week  2\nsign in with github     yes\naccount email           a@b.example\nsize                    1 MB",
  ));

it.each([
  [0, "0 MB"],
  [0.002, "3 KB"],
  [0.1, "0.1 MB"],
  [1024, "1.0 GB"],
])("%s megabytes are %s: nothing only where there is nothing", (megabytes, text) =>
  expect(size(megabytes)).toBe(text),
);

it.each([
  [59_900, "59.9 s"],
  [119_900, "2 min 0 s"],
])("%s ms are %s", (ms, text) => expect(duration(ms)).toBe(text));

it.each([
  ["darwin", "open"],
  ["win32", "rundll32"],
  ["linux", "xdg-open"],
] as const)("on %s a page is opened by %s, with the address as one argument", (platform, program) => {
  const url = "https://b.example/device?code=A&B|calc";
  const [name, args] = opener(platform, url);
  expect([name, args.at(-1)]).toEqual([program, expect.stringContaining(url)]);
});
