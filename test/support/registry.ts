import { createHash } from "node:crypto";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import tar from "tar-stream";

const sha256 = (bytes: Buffer | string): string =>
  `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
const manifestType = "application/vnd.docker.distribution.manifest.v2+json";

/** A registry of images that hold one file; engines take those of 127.0.0.1 by http. */
export async function startRegistry() {
  const blobs = new Map<string, Buffer>();
  const manifests = new Map<string, Buffer>();
  const keep = (bytes: Buffer): string => {
    const digest = sha256(bytes);
    blobs.set(digest, bytes);
    return digest;
  };
  const server = http.createServer((request, response) => {
    const [, kind = "", name = ""] = /\/(manifests|blobs)\/([^/]+)$/.exec(request.url ?? "") ?? [];
    if (request.url === "/v2/") return void response.end("{}");
    const found = kind === "manifests" ? manifests.get(name) : blobs.get(name);
    if (found === undefined) return void response.writeHead(404).end("{}");
    response.setHeader("Content-Type", kind === "manifests" ? manifestType : "application/octet-stream");
    response.setHeader("Docker-Content-Digest", sha256(found));
    response.setHeader("Content-Length", found.length);
    response.end(request.method === "HEAD" ? undefined : found);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    /** Another image of this tag from now on, with this environment. */
    async publish(tag: string, env: string): Promise<void> {
      const archive = tar.pack();
      archive.entry({ name: "file" }, env);
      archive.finalize();
      const files = await buffer(archive);
      const layer = gzipSync(files);
      const config = Buffer.from(
        JSON.stringify({
          architecture: process.arch === "x64" ? "amd64" : process.arch,
          os: "linux",
          config: { Env: [env] },
          rootfs: { type: "layers", diff_ids: [sha256(files)] },
          history: [{ created_by: "test" }],
        }),
      );
      const manifest = Buffer.from(
        JSON.stringify({
          schemaVersion: 2,
          mediaType: manifestType,
          config: {
            mediaType: "application/vnd.docker.container.image.v1+json",
            size: config.length,
            digest: keep(config),
          },
          layers: [
            {
              mediaType: "application/vnd.docker.image.rootfs.diff.tar.gzip",
              size: layer.length,
              digest: keep(layer),
            },
          ],
        }),
      );
      manifests.set(tag, manifest).set(sha256(manifest), manifest);
    },
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
