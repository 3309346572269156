import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { countedAs } from "../../protocol/client-address.ts";
import { formatId, growingIds, idPrefixes, isId, type IdKind } from "../../protocol/ids.ts";
import { formatUserCode, readUserCode } from "../../worker/domain/device-codes.ts";
import { slackBody, testNotification } from "../../worker/domain/notification-texts.ts";
import { addMonths } from "../../worker/domain/pricing.ts";
import { pushSkips, readPushEvent } from "../../worker/domain/push-event.ts";
import { admit } from "../../worker/domain/sliding-window.ts";
import { siteHostname, siteSlug, siteUrl } from "../../worker/domain/slug.ts";

const bytes10 = fc.uint8Array({ minLength: 10, maxLength: 10 });
const kinds = Object.keys(idPrefixes) as IdKind[];

describe("ids", () => {
  it("match their own kind and no other", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...kinds),
        fc.constantFrom(...kinds),
        fc.nat(2 ** 40),
        bytes10,
        (kind, other, now, random) => {
          expect(isId(other, formatId(kind, now, random))).toBe(kind === other);
        },
      ),
    );
  });

  it("differ if any one of the 80 random bits differs", () => {
    const random = Uint8Array.from({ length: 10 }, (_, index) => index * 23);
    const flipped = Array.from({ length: 80 }, (_, bit) =>
      random.map((byte, index) => (index === bit >> 3 ? byte ^ (1 << (bit & 7)) : byte)),
    );
    const minted = [random, ...flipped].map((bytes) => formatId("site", 0, bytes));
    expect(new Set(minted).size).toBe(81);
    expect(formatId("site", 0, new Uint8Array(10).fill(255))).toBe(
      `site_0${"0".repeat(10)}${"z".repeat(16)}`,
    );
  });

  it("grow as they are minted, also within a millisecond and whatever chance gives", () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ laterMs: fc.constantFrom(0, 0, 1), fill: fc.constantFrom(0, 127, 255) })),
        (mints) => {
          let nowMs = 0;
          let fill = 0;
          const mint = growingIds(
            () => nowMs,
            (bytes) => new Uint8Array(bytes).fill(fill),
          );
          const minted = mints.map((one) => {
            nowMs += one.laterMs;
            fill = one.fill;
            return mint("activity");
          });
          expect(minted).toEqual([...new Set(minted)].toSorted());
          expect(minted.every((id) => isId("activity", id))).toBe(true);
        },
      ),
    );
  });

  it("go on growing after the clock was put back by hours, so that the newest backup does not count as the oldest", () => {
    let nowMs = Date.parse("2026-12-31T23:58:00Z");
    const mint = growingIds(
      () => nowMs,
      (bytes) => new Uint8Array(bytes),
    );
    const before = mint("backup");
    nowMs -= 3_600_000;
    const during = [mint("backup"), mint("backup")];
    nowMs += 3_600_001;
    const minted = [before, ...during, mint("backup")];
    expect(minted).toEqual([...new Set(minted)].toSorted());
  });

  it("minted after the clock was put back by more than a day have its time", () => {
    let nowMs = 2 * 86_400_000;
    const mint = growingIds(
      () => nowMs,
      (bytes) => new Uint8Array(bytes),
    );
    mint("site");
    nowMs = 1000;
    expect(mint("site")).toBe(formatId("site", 1000, new Uint8Array(10)));
  });

  it("sort by the time they were minted", () => {
    fc.assert(
      fc.property(
        fc.nat(2 ** 40),
        fc.integer({ min: 1, max: 2 ** 30 }),
        bytes10,
        bytes10,
        (now, later, a, b) => {
          expect(formatId("site", now, a) < formatId("site", now + later, b)).toBe(true);
        },
      ),
    );
  });
});

describe("the sliding window", () => {
  const window = { limit: 5, windowMs: 1000 };

  it("admits at most the limit in any window, and refuses only when the limit was reached", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(400), { maxLength: 100 }), (steps) => {
        let now = 0;
        let hits: number[] = [];
        const admittedAt: number[] = [];
        for (const step of steps) {
          now += step;
          const recent = admittedAt.filter((at) => at > now - window.windowMs).length;
          const verdict = admit(hits, now, window);
          expect(verdict.admitted).toBe(recent < window.limit);
          hits = verdict.hits;
          if (verdict.admitted) admittedAt.push(now);
        }
      }),
    );
  });

  it("does not lock a key out for longer than a window when the clock steps back", () => {
    const { hits } = admit([], 10_000_000, window);
    const full = Array.from({ length: 5 }, () => hits[0] ?? 0);
    expect(admit(full, 5_000, window).admitted).toBe(true);
  });
});

describe("a client's address", () => {
  it.each([
    ["203.0.113.7", "203.0.113.7"],
    ["2001:db8::1", "2001:db8:0:0::/64"],
    ["2001:DB8:0:0:ffff::1", "2001:db8:0:0::/64"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
    ["::1", "0:0:0:0::/64"],
    ["::1:2:3:4:5:6", "0:0:1:2::/64"],
    ["1::2:3:4:5:6", "1:0:0:2::/64"],
    ["1:2::3", "1:2:0:0::/64"],
    ["::ffff:203.0.113.7", "::ffff:cb00:7107"],
    ["unknown", "unknown"],
    ["not:an:address", "not:an:address"],
  ])("%s is counted as %s", (address, counted) => expect(countedAs(address)).toBe(counted));
});

describe("terms", () => {
  it("end on the same day, or on the last of a shorter month", () => {
    expect(addMonths(new Date("2026-01-31T10:00:00Z"), 1).toISOString()).toBe("2026-02-28T10:00:00.000Z");
    expect(addMonths(new Date("2026-11-15T00:00:00Z"), 3).toISOString()).toBe("2027-02-15T00:00:00.000Z");
    expect(addMonths(new Date("2024-02-29T00:00:00Z"), 12).toISOString()).toBe("2025-02-28T00:00:00.000Z");
    expect(addMonths(new Date("2026-02-28T10:00:00Z"), 1, 31).toISOString()).toBe("2026-03-31T10:00:00.000Z");
    expect(addMonths(new Date("2026-02-28T10:00:00Z"), -1, 30).toISOString()).toBe(
      "2026-01-30T10:00:00.000Z",
    );
  });
});

describe("a site's address", () => {
  it("is a DNS label of at most 63 below the sites' domain whatever the name, port kept", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.stringMatching(/^[a-z0-9-]{1,63}$/), fc.stringMatching(/^-{1,3}[a-z0-9]{0,2}-{1,55}$/)),
        fc.uint8Array({ minLength: 8, maxLength: 8 }),
        (name, random) => {
          const slug = siteSlug(name, random);
          expect(slug).toMatch(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/);
          expect(slug).not.toContain("--");
        },
      ),
    );
    expect(siteSlug("my-shop", new Uint8Array(8))).toBe("my-shop-00000000");
    expect(siteSlug("a".repeat(63), new Uint8Array(8))).toBe(`${"a".repeat(54)}-00000000`);
    expect(siteUrl("http://localhost:8080", "shop-1234")).toBe("http://shop-1234.localhost:8080");
    expect(siteHostname("http://localhost:8080", "shop-1234")).toBe("shop-1234.localhost");
    expect(siteHostname("https://sites.example", "shop-1234")).toBe("shop-1234.sites.example");
  });
});

describe("a device's code", () => {
  it("has no two characters that are misread for one another, and is found by one that was", () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 64, maxLength: 64, max: 200 }), (random) => {
        const code = formatUserCode(random);
        expect(code).not.toMatch(/[0-1AEIOU2568]/);
        expect(readUserCode(code.toLowerCase().replaceAll("s", "5").replaceAll("b", "8"))).toBe(code);
      }),
    );
    expect([readUserCode("2568-CDFG"), readUserCode("ZSGB cdfg"), readUserCode("1CDF-GHJK")]).toEqual([
      "ZSGB-CDFG",
      "ZSGB-CDFG",
      null,
    ]);
  });
});

describe("a webhook's delivery", () => {
  const push = (ref: string, branch: string | null, defaultBranch?: string) =>
    pushSkips(
      readPushEvent("push", JSON.stringify({ ref, repository: { default_branch: defaultBranch } })),
      branch,
    );

  it("is read as well from the form that GitHub's hooks send by default", () => {
    const form = (payload: object) => new URLSearchParams({ payload: JSON.stringify(payload) }).toString();
    const main = { ref: "refs/heads/main", repository: { default_branch: "main" }, text: "a+b & ü" };
    expect(readPushEvent("push", form(main))).toEqual({
      event: "push",
      refs: ["refs/heads/main"],
      defaultBranch: "main",
    });
    expect(pushSkips(readPushEvent("push", form({ ...main, ref: "refs/heads/dev" })), "main")).toBe(true);
    for (const body of ["payload=", "payload=%7B", "payload=7", "other=1"])
      expect(pushSkips(readPushEvent("push", body), "main")).toBe(false);
  });

  it("deploys a push to the site's branch, and skips any other", () => {
    expect(push("refs/heads/main", "main")).toBe(false);
    expect(push("refs/heads/dev", "main")).toBe(true);
    expect(push("refs/tags/main", "main")).toBe(true);
    expect(push("refs/heads/dev", null, "trunk")).toBe(true);
    expect(push("refs/heads/trunk", null, "trunk")).toBe(false);
    // Neither names a branch, as with Bitbucket.
    expect(push("refs/heads/dev", null)).toBe(false);
    expect(push("refs/tags/v1", null)).toBe(true);
  });

  const zeros = "0".repeat(40);
  const gitlab = { project: { default_branch: "main" }, after: "c".repeat(40) };
  const bitbucket = (...changes: object[]) => ({ push: { changes } });
  const change = (name: string, type = "branch") => ({ new: { type, name }, old: null });
  const gone = (name: string) => ({ new: null, old: { type: "branch", name } });
  const changed = (...names: string[]) => ({
    changes: names.map((name) => ({ ref: { id: `refs/heads/${name}` }, type: "UPDATE" })),
  });
  const azureUpdates = (newObjectId: string, names: string[]) => ({
    eventType: "git.push",
    publisherId: "tfs",
    resource: {
      refUpdates: names.map((name) => ({ name, oldObjectId: "a".repeat(40), newObjectId })),
      repository: { defaultBranch: "refs/heads/main" },
    },
  });
  const azure = (...names: string[]) => azureUpdates("b".repeat(40), names);
  const azureGone = (...names: string[]) => azureUpdates(zeros, names);
  it.each([
    [
      "GitHub's deletion of the branch",
      "push",
      { ref: "refs/heads/main", deleted: true, after: zeros },
      true,
    ],
    [
      "GitLab's deletion of the branch",
      "Push Hook",
      { ...gitlab, ref: "refs/heads/main", after: zeros },
      true,
    ],
    ["GitHub's forced push", "push", { ref: "refs/heads/main", forced: true }, false],
    ["GitLab's tag", "Tag Push Hook", { ...gitlab, ref: "refs/tags/v1" }, true],
    ["GitLab's push", "Push Hook", { ...gitlab, ref: "refs/heads/main" }, false],
    ["GitLab's push to another branch", "Push Hook", { ...gitlab, ref: "refs/heads/dev" }, true],
    ["Bitbucket's push", "repo:push", bitbucket(change("main")), false],
    ["Bitbucket's push to another branch", "repo:push", bitbucket(change("dev")), true],
    ["Bitbucket's tag", "repo:push", bitbucket(change("main", "tag")), true],
    ["Bitbucket's deletion", "repo:push", bitbucket(gone("main")), true],
    ["Bitbucket's push to several", "repo:push", bitbucket(change("dev"), change("main")), false],
    ["Bitbucket's push to several others", "repo:push", bitbucket(change("dev"), change("fix")), true],
    ["Bitbucket's tags", "repo:push", bitbucket(change("main", "tag"), change("v2", "tag")), true],
    ["Bitbucket's deletion of several", "repo:push", bitbucket(gone("main"), gone("dev")), true],
    [
      "Bitbucket's deletion beside a push to another branch",
      "repo:push",
      bitbucket(gone("main"), change("dev")),
      true,
    ],
    [
      "Bitbucket's deletion beside a push to the branch",
      "repo:push",
      bitbucket(gone("dev"), change("main")),
      false,
    ],
    ["Bitbucket's push with what is no change", "repo:push", bitbucket(change("dev"), {}), false],
    ["Bitbucket's push without changes", "repo:push", bitbucket(), false],
    ["Bitbucket Data Center's push to several others", "repo:refs_changed", changed("dev", "fix"), true],
    ["Bitbucket Data Center's push to several", "repo:refs_changed", changed("dev", "main"), false],
    [
      "Bitbucket Data Center's push",
      "repo:refs_changed",
      { changes: [{ ref: { id: "refs/heads/dev" }, type: "UPDATE" }] },
      true,
    ],
    [
      "Bitbucket Data Center's push to the branch",
      "repo:refs_changed",
      { changes: [{ ref: { id: "refs/heads/main" }, type: "UPDATE" }] },
      false,
    ],
    [
      "Bitbucket Data Center's deletion of the branch",
      "repo:refs_changed",
      { changes: [{ ref: { id: "refs/heads/main" }, type: "DELETE" }] },
      true,
    ],
    [
      "Bitbucket Data Center's tag",
      "repo:refs_changed",
      { changes: [{ ref: { id: "refs/tags/main" }, type: "ADD" }] },
      true,
    ],
    [
      "GitLab's system hook of a branch that was deleted",
      "System Hook",
      { event_name: "push", ref: "refs/heads/dev", after: "0".repeat(40) },
      true,
    ],
    ["Azure's push", null, azure("refs/heads/main"), false],
    ["Azure's push to another branch", null, azure("refs/heads/other"), true],
    ["Azure's push to several", null, azure("refs/heads/other", "refs/heads/main"), false],
    ["Azure's tag", null, azure("refs/tags/main"), true],
    ["Azure's deletion of the branch", null, azureGone("refs/heads/main"), true],
    ["Azure's push that says no more", null, { eventType: "git.push" }, false],
    ["Azure's pull request", null, { eventType: "git.pullrequest.created" }, true],
    [
      "Azure's comment on one",
      null,
      { eventType: "ms.vss-code.git-pullrequest-comment-event", resource: { comment: {} } },
      true,
    ],
    ["Azure's comment on a work item", null, { eventType: "workitem.commented", resource: {} }, true],
    ["Azure's build that ended", null, { eventType: "build.complete", resource: { id: 1 } }, false],
    ["nobody, as of a push to the branch", null, { ref: "refs/heads/main" }, false],
    ["nobody, as of a push to another branch", null, { ref: "refs/heads/dev" }, true],
    ["nobody, as of a tag", null, { ref: "refs/tags/v1" }, true],
    ["nobody, as of a deletion", null, { ref: "refs/heads/main", after: zeros }, true],
    ["a program that names the branch", null, { ref: "main" }, false],
    ["a program that names another ref", null, { ref: "v1.2.3" }, false],
    ["a program that deleted something", null, { deleted: true }, false],
    ["a program that has a field of that name", null, { after: zeros }, false],
    ["a program that has changes", null, { changes: [{ ref: { id: "1" }, type: "DELETE" }] }, false],
    ["a program that has events of its own", null, { eventType: "create" }, false],
    ["GitHub's pull request", "pull_request", { action: "opened" }, true],
    ["GitHub's comment", "issue_comment", { action: "created" }, true],
    ["GitHub's new branch, which a push follows", "create", { ref: "main", ref_type: "branch" }, true],
    ["GitLab's merge request", "Merge Request Hook", {}, true],
    ["GitLab's hidden comment", "Confidential Note Hook", {}, true],
    ["Bitbucket's pull request", "pullrequest:created", {}, true],
    ["Bitbucket Data Center's pull request", "pr:opened", {}, true],
    ["Bitbucket Data Center's comment on one", "pr:comment:added", {}, true],
    ["Bitbucket Data Center's comment on a commit", "repo:comment:added", {}, true],
    ["GitHub's workflow that ended", "workflow_run", { action: "completed" }, false],
    ["GitHub's release", "release", { action: "published" }, false],
  ])("of %s is skipped, or deploys, by what it says", (_, event, payload, isSkipped) => {
    expect(pushSkips(readPushEvent(event, JSON.stringify(payload)), "main")).toBe(isSkipped);
  });

  it.each([
    ["GitLab", "Push Hook", (ref: string) => ({ ...gitlab, ref })],
    ["Azure", null, (ref: string) => azure(ref)],
  ])("of %s to a site without a branch deploys for the project's own", (_, event, sent) => {
    const skips = (ref: string) => pushSkips(readPushEvent(event, JSON.stringify(sent(ref))), null);
    expect([skips("refs/heads/main"), skips("refs/heads/dev"), skips("refs/tags/v1")]).toEqual([
      false,
      true,
      true,
    ]);
  });

  it("deploys when nothing can be told from the body, and never throws", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (body) => {
        expect(typeof pushSkips(readPushEvent(null, body), null)).toBe("boolean");
      }),
    );
    expect(pushSkips(readPushEvent(null, ""), "main")).toBe(false);
    expect(readPushEvent("push", "")).toEqual({ event: "push", refs: null, defaultBranch: null });
    expect(pushSkips(readPushEvent("ping", "{}"), "main")).toBe(true);
  });
});

describe("a notification in Slack's format", () => {
  const textOf = (text: string): string =>
    (
      JSON.parse(
        slackBody({ ...testNotification, subject: "shop <1>", text, link: "https://b.example/sites/1" }),
      ) as { text: string }
    ).text;

  it("is short enough for Discord, and cut within no escape and no character", () => {
    const character = fc.constantFrom("a", "<", "&", "😀");
    fc.assert(
      fc.property(fc.string({ unit: character, minLength: 500, maxLength: 2000 }), (text) => {
        const said = textOf(text);
        expect(said.length).toBeLessThanOrEqual(1900);
        expect(said).toMatch(/^\*shop &lt;1&gt;\*\n[^]*\n<https:\/\/b\.example\/sites\/1>$/);
        expect(said.isWellFormed()).toBe(true);
        expect(said.replaceAll(/&(?:amp|lt|gt);/g, "")).not.toContain("&");
      }),
    );
  });

  it("keeps as much of a long text as fits, and all of a short one", () => {
    const room = 1900 - textOf("").length;
    expect(textOf("a".repeat(room))).toContain(`\n${"a".repeat(room)}\n`);
    expect(textOf("a".repeat(room + 1))).toContain(`\n${"a".repeat(room - 1)}…\n`);
  });
});
