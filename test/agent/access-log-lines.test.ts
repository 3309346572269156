import { expect, it } from "vitest";
import { entriesIn } from "../../agent/running/access-log-lines.ts";

const entry = {
  ts: 1_795_693_702_819_151_872,
  bytes_read: 7,
  duration: 64_290,
  size: 1000,
  status: 200,
  uuid: "6d0daad1-a206-4c3f-a487-28fa76b43ae2",
};
const upstream = "h127-0-0-1.up.internal.:3000";
const seen = [
  "GET",
  "shop.example.com:8080",
  "/page?n=1",
  "203.0.113.7",
  "browser one",
  "https://search.example/find",
  "1795693702718",
];
const read = {
  ...entry,
  upstream,
  method: "GET",
  host: "shop.example.com:8080",
  uri: "/page?n=1",
  address: "203.0.113.7",
  agent: "browser one",
  referrer: "https://search.example/find",
};
/** As Caddy writes it. */
const line = (part: object = {}, fields = seen) =>
  `${JSON.stringify({ ...entry, seen: fields.join("\n"), upstream, ...part })}\n`;

it("a line as Caddy writes it is read as any other JSON of the same content", () => {
  const reversed = Object.fromEntries(
    Object.entries({ ...entry, upstream, seen: seen.join("\n") }).toReversed(),
  );
  const [common, other] = entriesIn(line() + `${JSON.stringify(reversed)}\n`);
  expect(common).toEqual({ ...read, served: undefined });
  expect(other).toEqual(read);
});

it("a request without the fields that not all have is read too", () => {
  const { ts, bytes_read, duration, size, status } = entry;
  const bare = { ts, bytes_read, duration, size, status, seen: "GET\nshop.example.com\n/\n::1\n\n\n" };
  expect(entriesIn(`${JSON.stringify(bare)}\n`)).toMatchObject([{ address: "::1", agent: "", referrer: "" }]);
  expect(entriesIn(line({ upstream: null }))).toMatchObject([{ uri: "/page?n=1", status: 200 }]);
  expect(entriesIn(line({ upstream: undefined, served: "h127-0-0-2.up.internal:80" }))).toMatchObject([
    { served: "h127-0-0-2.up.internal:80" },
  ]);
});

it("an answer that was broken off took as long as it lasted", () => {
  const [quick, escaped] = entriesIn(line({ duration: 0 }) + line({ duration: 0 }, seen.with(4, "\t")));
  expect(quick?.duration).toBe(101_151_744);
  expect(escaped?.duration).toBe(quick?.duration);
});

it("a line of a Caddy that was started before an update is read too", () => {
  const before = { ...entry, upstream, seen: seen.slice(0, 6).join("\n") };
  expect(entriesIn(`${JSON.stringify(before)}\n`)).toEqual([read]);
});

it.each(['quote"', "back\\slash", "tab\t", "\u2603 ünïcode", "n\\n"])("a visitor may write %j", (agent) => {
  const fields = seen.with(4, agent).with(2, `/${agent}`);
  const found = entriesIn(line() + line({}, fields) + line());
  expect(found.map((one) => [one.agent, one.uri])).toEqual([
    ["browser one", "/page?n=1"],
    [agent, `/${agent}`],
    ["browser one", "/page?n=1"],
  ]);
});

it.each([
  ["half a line", line().slice(0, 90) + "\n"],
  ["half a line before a whole one", line().slice(0, 90) + line()],
  ["another log", '{"level":"info","ts":1.5,"logger":"tls","msg":"done"}\n'],
  ["too few fields", line({}, seen.slice(2))],
  ["too many fields", line({}, [...seen, "more"])],
  ["a status that is none", line({ status: 1000 })],
  ["nothing", "\n"],
])("%s is left out, and what follows is read", (_name, text) => {
  expect(entriesIn(text + line({ size: 5 })).map(({ size }) => size)).toEqual([5]);
});
