import { beforeAll, expect, it } from "vitest";
import { pagesOfOperator } from "./pages.ts";
import {
  account,
  api,
  bindings,
  createSite,
  deployResult,
  finishNext,
  operator,
  readyAgent,
  runningSite,
  site,
  type Agent,
} from "./service.ts";

let pages: Awaited<ReturnType<typeof pagesOfOperator>>;
beforeAll(async () => {
  pages = await pagesOfOperator();
});
const pathOf = (siteId: string) => `/sites/${siteId}/data`;

/** A host that answers about files what `files` is at the time, and refuses everything else. */
function answersFiles(on: Agent) {
  const host = { files: {} as object };
  const answerAll = async (): Promise<never> => {
    for (;;) {
      const { requestId, question } = await on.next("ask");
      const answer = question.kind === "files" ? host.files : { kind: "refused", error: "Nothing." };
      on.send({ type: "answer", requestId, answer, last: true });
    }
  };
  void answerAll();
  return host;
}

it("a site's data is its owner's alone", async () => {
  const { siteId } = await createSite(await account());
  expect((await pages.show(pathOf(siteId))).status).toBe(403);
  expect((await pages.send(pathOf(siteId), "add", { name: "a", mountPath: "/a" })).status).toBe(403);
});

it("a volume is added and detached, and what is wrong stands beside its field", async () => {
  const { siteId } = await createSite(await operator());
  const add = (name: string, mountPath: string) => pages.send(pathOf(siteId), "add", { name, mountPath });
  expect((await pages.show(pathOf(siteId))).text).toContain("No volume");
  expect((await add("uploads", "/data")).status).toBe(303);
  expect((await site(await operator(), siteId)).volumes).toEqual([{ name: "uploads", mountPath: "/data" }]);
  for (const [name, mountPath, field] of [
    ["uploads", "/other", "name"],
    ["Other", "/other", "name"],
    ["other", "/data", "mountPath"],
    ["other", "/etc/<u>", "mountPath"],
  ] as const) {
    const { status, text } = await add(name, mountPath);
    expect([name, mountPath, status]).toEqual([name, mountPath, 400]);
    expect(text).toMatch(new RegExp(`name="${field}"[^>]*aria-invalid="true"`));
    expect(text).not.toContain("<u>");
  }
  await pages.send(pathOf(siteId), "detach", { name: "uploads" });
  expect((await site(await operator(), siteId)).volumes).toEqual([]);
  expect((await pages.show(pathOf(siteId))).text).toContain("Delete uploads");
  await pages.send(pathOf(siteId), "remove", { name: "uploads" });
  expect((await pages.show(pathOf(siteId))).text).not.toContain("Delete uploads");
});

it("a volume that the version in service does not mount says so, also after a rollback to before it", async () => {
  const on = await readyAgent();
  answersFiles(on);
  const key = await operator();
  const { siteId } = await runningSite(key, on);
  const mount = `<code>/data</code>`;
  const later = `${mount}<div class="soft small">from the next deployment on</div>`;
  await pages.send(pathOf(siteId), "add", { name: "uploads", mountPath: "/data" });
  expect((await pages.show(pathOf(siteId))).text).toContain(later);
  await api(key, "PATCH", `/sites/${siteId}`, { action: "deploy" });
  await finishNext(on, deployResult);
  const deployed = (await pages.show(pathOf(siteId))).text;
  expect(deployed).toContain(mount);
  expect(deployed).not.toContain(later);
  await api(key, "POST", `/sites/${siteId}/rollback`, {});
  await finishNext(on, deployResult);
  expect((await pages.show(pathOf(siteId))).text).toContain(later);
  on.close();
});

it("folders and files of the running site are read, and nothing of them is HTML", async () => {
  const on = await readyAgent();
  const { siteId } = await runningSite(await operator(), on);
  const host = answersFiles(on);
  const modifiedAt = "2026-11-20T10:00:00.000Z";
  host.files = {
    kind: "files",
    found: {
      kind: "folder",
      path: "/app",
      entries: [
        { name: "<i>.js", kind: "file", sizeBytes: 1234, modifiedAt },
        { name: "lib", kind: "folder", sizeBytes: null, modifiedAt },
      ],
      truncated: false,
    },
  };
  const folder = await pages.show(`${pathOf(siteId)}?path=/app`);
  expect(folder.text).toContain(`${pathOf(siteId)}?path=%2Fapp%2Flib#files`);
  expect(folder.text).toContain("&lt;i&gt;.js");
  host.files = {
    kind: "files",
    found: { kind: "file", path: "/app/lib", sizeBytes: 9, text: "<script>1</script>", truncated: true },
  };
  const file = await pages.show(`${pathOf(siteId)}?path=/app/lib&volume=uploads`);
  expect(file.text).toContain("&lt;script&gt;1&lt;/script&gt;");
  expect(file.text).toContain("Only the first 128 KiB");
  for (const more of [{}, { isMissing: true }]) {
    host.files = { kind: "refused", error: "Not <there>.", ...more };
    const refused = await pages.show(`${pathOf(siteId)}?path=/gone`);
    expect([refused.status, refused.text]).toEqual([200, expect.stringContaining("Not &lt;there&gt;.")]);
  }
  on.close();
});

it("a volume's backups are made, planned, tried, restored and deleted on their page", async () => {
  const on = await readyAgent();
  const { siteId } = await runningSite(await operator(), on, {
    volumes: [{ name: "uploads", mountPath: "/data" }],
  });
  answersFiles(on);
  const path = `${pathOf(siteId)}/uploads`;
  const other = await createSite(await account());
  expect((await pages.show(`${pathOf(other.siteId)}/uploads`)).status).toBe(403);
  expect((await pages.show(`${pathOf(siteId)}/none`)).status).toBe(404);
  expect((await pages.show(pathOf(siteId))).text).toContain(`href="${path}"`);
  expect((await pages.show(path)).text).toContain("No backups yet");

  const planned = await pages.send(path, "schedule", { schedule: "weekly", hourUtc: "4", keep: "3" });
  expect([planned.status, planned.location]).toEqual([303, path]);
  const row = await bindings.DB.prepare("SELECT * FROM site_volumes WHERE site_id = ?").bind(siteId).first();
  expect(row).toMatchObject({ backup_schedule: "weekly", backup_hour_utc: 4, backup_keep: 3 });
  const wrong = await pages.send(path, "schedule", { schedule: "weekly", hourUtc: "4", keep: "900" });
  expect(wrong.status).toBe(400);
  expect(wrong.text).toMatch(/name="keep"[^>]*aria-invalid="true"/);
  await pages.send(path, "schedule", { schedule: "15 3 * * mon", hourUtc: "4", keep: "3" });
  expect((await pages.show(path)).text).toContain('<option value="15 3 * * mon" selected="">Every Monday');

  expect((await pages.send(path, "create")).status).toBe(303);
  expect((await pages.show(path)).text).toContain("Being made");
  await bindings.DB.batch([
    bindings.DB.prepare(
      `UPDATE backups SET status = 'VERIFIED', size_bytes = 5000000, sha256 = 'a', fingerprint_sha256 = 'b', rows = 4,
        consistent = 0, finished_at = 1, verified_at = 1 WHERE database_id = ?`,
    ).bind(`${siteId}/uploads`),
    bindings.DB.prepare("UPDATE jobs SET status = 'DONE', finished_at = 1 WHERE kind = 'volume.backup'"),
  ]);
  const { text } = await pages.show(path);
  for (const shown of [
    "Verified",
    // As the command line shows these 5,000,000 bytes.
    "4.8 MB",
    "4 files and folders",
    "not all of it may be from the same moment",
    "weekly",
  ])
    expect(text).toContain(shown);
  // Backups are chosen by the minute: how long ago is hours or days.
  expect(text.match(/<time[^>]* data-local/g)).toHaveLength(2);
  const [, backupId = ""] = /name="backupId" value="(bak_[^"]+)"/.exec(text) ?? [];
  const restore = (form: string, fields: Record<string, string>) =>
    pages.send(path, `${form}:${backupId}`, { backupId, ...fields });
  expect(await restore("restore", { confirm: "other" })).toMatchObject({
    status: 409,
    text: expect.stringContaining("Nothing was restored"),
  });
  expect(await restore("restore", { confirm: "uploads" })).toMatchObject({
    status: 409,
    text: expect.stringContaining("Stop it first"),
  });
  for (const [form, fields] of [
    ["restore", { confirm: "other" }],
    ["copy", { into: "uploads" }],
  ] as const)
    expect((await restore(form, fields)).text, "the reason is in an open menu").toMatch(
      /<details class="menu"[^>]* open[^>]*>\s*<summary[^>]*aria-label="Restore the backup/,
    );
  expect(await restore("copy", { into: "uploads" })).toMatchObject({
    status: 409,
    text: expect.stringContaining("Choose another name"),
  });
  const copied = await restore("copy", { into: "restored" });
  expect([copied.status, copied.location]).toEqual([303, `${pathOf(siteId)}/restored`]);
  expect((await pages.show(copied.location)).text).toContain("being restored into this volume");

  await bindings.DB.prepare(
    "UPDATE site_volumes SET backup_failures = 2, backups_failing_since = 1, backup_failure_reason = ? WHERE name = 'uploads'",
  )
    .bind("<b>no space</b>")
    .run();
  expect((await pages.show(path)).text).toContain("&lt;b&gt;no space");
  expect((await pages.show(pathOf(siteId))).text).toContain("failing");
  expect((await restore("download", {})).location).toContain(`/backups/${backupId}/download?`);
  expect((await restore("verify", {})).status).toBe(303);
  // Nothing reads it any more.
  await bindings.DB.prepare("UPDATE jobs SET status = 'DONE', finished_at = 1 WHERE backup_id = ?")
    .bind(backupId)
    .run();
  expect((await restore("remove", {})).status).toBe(303);
  expect((await pages.show(path)).text).toContain("No backups yet");
  on.close();
});
