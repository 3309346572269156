import { spawn } from "node:child_process";
import { createReadStream, existsSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { json } from "node:stream/consumers";

export type GitServer = {
  port: number;
  /** All requests in the order of arrival. */
  requests: { path: string; authorization: string | undefined }[];
  close(): Promise<void>;
};

/** The address of a Git LFS object: by default on this server. */
export type HrefOf = (oid: string, own: string) => string;

/**
 * Serves the bare repositories below a folder, read-only, by Git's own smart HTTP backend (git-http-backend(1)), and
 * the objects in a repository's `lfs` folder by Git LFS's batch API.
 */
export async function startGitServer(
  root: string,
  port = 0,
  hrefOf: HrefOf = (_, own) => own,
): Promise<GitServer> {
  const requests: GitServer["requests"] = [];
  const server = http.createServer((request, response) => {
    // Whoever asked may be gone.
    response.on("error", () => undefined);
    answer(request, response).catch(() => (response.headersSent ? response : response.writeHead(400)).end());
  });
  const answer = async (request: http.IncomingMessage, response: http.ServerResponse): Promise<void> => {
    const url = new URL(request.url ?? "/", `http://${request.headers.host}`);
    requests.push({ path: url.pathname, authorization: request.headers.authorization });
    const [, repository, rest] =
      /^\/(.+\.git)\/info\/lfs\/(objects\/batch|[0-9a-f]{64})$/.exec(url.pathname) ?? [];
    if (repository !== undefined && rest !== undefined) {
      const stored = join(root, repository, "lfs");
      if (rest === "objects/batch")
        await answerBatch(request, response, stored, (oid) =>
          hrefOf(oid, new URL(oid, url.href.replace("objects/batch", "")).href),
        );
      else
        createReadStream(join(stored, rest))
          .on("error", () => response.writeHead(404).end())
          .pipe(response);
      return;
    }
    const backend = spawn("git", ["http-backend"], {
      stdio: ["pipe", "pipe", "ignore"],
      env: {
        PATH: process.env["PATH"],
        GIT_PROJECT_ROOT: root,
        GIT_HTTP_EXPORT_ALL: "1",
        GIT_CONFIG_COUNT: "2",
        GIT_CONFIG_KEY_0: "safe.directory",
        GIT_CONFIG_VALUE_0: "*",
        // As public Git hosts do.
        GIT_CONFIG_KEY_1: "uploadpack.allowFilter",
        GIT_CONFIG_VALUE_1: "true",
        REQUEST_METHOD: request.method,
        PATH_INFO: decodeURIComponent(url.pathname),
        QUERY_STRING: url.search.slice(1),
        CONTENT_TYPE: request.headers["content-type"] ?? "",
        HTTP_CONTENT_ENCODING: request.headers["content-encoding"] ?? "",
        GIT_PROTOCOL: String(request.headers["git-protocol"] ?? ""),
        REMOTE_ADDR: "127.0.0.1",
      },
    });
    request.pipe(backend.stdin);
    backend.stdin.on("error", () => undefined);
    backend.on("error", () => response.writeHead(500).end());
    let head = Buffer.alloc(0);
    const onHead = (chunk: Buffer): void => {
      head = Buffer.concat([head, chunk]);
      const end = head.indexOf("\r\n\r\n");
      if (end < 0) return;
      backend.stdout.off("data", onHead);
      let status = 200;
      for (const line of head.subarray(0, end).toString("latin1").split("\r\n")) {
        const [name = "", value = ""] = line.split(/:\s*/, 2);
        if (name.toLowerCase() === "status") status = Number.parseInt(value, 10);
        else response.setHeader(name, value);
      }
      response.writeHead(status);
      response.write(head.subarray(end + 4));
      backend.stdout.pipe(response);
    };
    backend.stdout.on("data", onHead);
    backend.stdout.on("end", () => response.end());
    response.on("close", () => backend.kill());
  };
  await new Promise<void>((resolve, reject) =>
    server.once("error", reject).listen(port, "127.0.0.1", resolve),
  );
  return {
    port: (server.address() as AddressInfo).port,
    requests,
    close: () => new Promise((resolve) => (server.close(() => resolve()), server.closeAllConnections())),
  };
}

/** https://github.com/git-lfs/git-lfs/blob/main/docs/api/batch.md */
async function answerBatch(
  request: http.IncomingMessage,
  response: http.ServerResponse,
  stored: string,
  hrefOf: (oid: string) => string,
): Promise<void> {
  const { objects } = (await json(request)) as { objects: { oid: string; size: number }[] };
  const answer = objects.map(({ oid, size }) =>
    existsSync(join(stored, oid))
      ? { oid, size, actions: { download: { href: hrefOf(oid) } } }
      : { oid, size, error: { code: 404, message: "Object does not exist" } },
  );
  response.setHeader("Content-Type", "application/vnd.git-lfs+json");
  response.end(JSON.stringify({ transfer: "basic", objects: answer }));
}
