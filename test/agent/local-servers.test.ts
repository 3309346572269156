import { connect } from "node:net";
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { startGitServer } from "../../scripts/lib/git-server.ts";
import { startMailServer } from "../../scripts/lib/mail-server.ts";
import { freePort } from "../../scripts/lib/state.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** Both run in the process that keeps everything of `npm start` running. */
const folder = temporaryFolder();

async function statusOf(port: number, request: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  socket.write(request.replace("\n", "\nConnection: close\n").replaceAll("\n", "\r\n"));
  return (await text(socket)).split("\r\n")[0] ?? "";
}

test.each([
  ["a path that is not encoded as it should be", "GET /a.git/info/refs%ff HTTP/1.1\nHost: a\n\n"],
  ["an address without a host", "GET //[ HTTP/1.1\nHost: a\n\n"],
  ["a host that is none", "GET /a.git/info/refs HTTP/1.1\nHost: a b\n\n"],
  [
    "a batch that is not JSON",
    "POST /a.git/info/lfs/objects/batch HTTP/1.1\nHost: a\nContent-Length: 1\n\n{",
  ],
])("The Git server refuses %s, and goes on", async (_, request) => {
  const server = await startGitServer(folder);
  expect(await statusOf(server.port, request)).toBe("HTTP/1.1 400 Bad Request");
  expect(await statusOf(server.port, "GET /none.git/info/refs HTTP/1.1\nHost: a\n\n")).toBe(
    "HTTP/1.1 404 Not Found",
  );
  await server.close();
});

test("The mail server refuses what is no mail, says when it cannot keep one, and goes on", async () => {
  const port = await freePort();
  const mails = join(folder, "mails");
  await startMailServer(mails, port);
  const mail = `POST /emails HTTP/1.1\nHost: a\nContent-Length: 2\n\n{}`;
  expect(await statusOf(port, mail.replace("{}", "{["))).toBe("HTTP/1.1 400 Bad Request");
  rmSync(mails, { recursive: true });
  expect(await statusOf(port, mail)).toBe("HTTP/1.1 500 Internal Server Error");
  expect(readdirSync(folder)).not.toContain("mails");
});
