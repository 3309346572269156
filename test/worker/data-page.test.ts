import { beforeAll, expect, it } from "vitest";
import { pagesOfOperator } from "./pages.ts";
import { account, createSite, operator, readyAgent, runningSite, site, type Agent } from "./service.ts";

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
  on.close();
});
