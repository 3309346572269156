import { expect, it } from "vitest";
import { HostInbox } from "../../worker/domain/host-inbox.ts";

const never = () => new Promise<void>(() => undefined);

/** How many of these may come at this moment. */
function admitted(inbox: HostInbox, characters: number, nowMs: number): number {
  let count = 0;
  while (count < 100_000 && inbox.admits(characters, nowMs)) count++;
  return count;
}

it("a host may say much in ten seconds, not without end, and as much again in the next", () => {
  const inbox = new HostInbox();
  expect(admitted(inbox, 100, 0)).toBe(20_000);
  expect(inbox.admits(100, 9999)).toBe(false);
  expect(admitted(inbox, 100, 10_000)).toBe(20_000);
  expect(admitted(new HostInbox(), 1024 * 1024, 0)).toBe(256);
});

it("a host's window ends although the service's clock is set back, so that its connection is not ended hours later", () => {
  const inbox = new HostInbox();
  expect(admitted(inbox, 100, 3_600_000)).toBe(20_000);
  expect(admitted(inbox, 100, 0)).toBe(20_000);
});

it("what waits to be worked on has a bound, in messages and in size", () => {
  const slow = new HostInbox();
  for (let count = 0; count < 2000; count++) void slow.inTurn(10, never);
  expect(slow.admits(10, 0)).toBe(true);
  void slow.inTurn(10, never);
  expect(slow.admits(10, 0)).toBe(false);
  const large = new HostInbox();
  for (let count = 0; count < 96; count++) void large.inTurn(1024 * 1024, never);
  expect(large.admits(10, 0)).toBe(true);
  void large.inTurn(1, never);
  expect(large.admits(10, 0)).toBe(false);
});

it("one message is worked on after the other, also after one that failed, and then none waits", async () => {
  const inbox = new HostInbox();
  const seen: string[] = [];
  const say = (text: string) => async () => {
    seen.push(`begin ${text}`);
    await Promise.resolve();
    seen.push(`end ${text}`);
    if (text === "one") throw new Error("D1 is away");
  };
  const one = inbox.inTurn(1, say("one"));
  const two = inbox.inTurn(1, say("two"));
  await expect(one).rejects.toThrow("D1 is away");
  await two;
  expect(seen).toEqual(["begin one", "end one", "begin two", "end two"]);
  for (let count = 0; count < 3000; count++) await inbox.inTurn(1024 * 1024, () => Promise.resolve());
  expect(inbox.admits(1, 0)).toBe(true);
});
