import { createHash } from "node:crypto";
import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import {
  fingerprintText,
  leaseHeaders,
  partBytes,
  partHashHeader,
  UploadComplete,
  type Manifest,
  type StoredBackup,
} from "../../protocol/agent/backups.ts";

const sha256 = (bytes: Buffer | string): string => createHash("sha256").update(bytes).digest("hex");

type Kept = { data: Buffer; manifest: Manifest };

/** The control plane's routes for backups, in this process and without leases: worker tests prove those. */
export class PartServer {
  readonly token = "hst_test";
  /** Finished backups by id; a test may damage them. */
  readonly kept = new Map<string, Kept>();
  /** Each request, and the attempt that it named. */
  readonly requests: string[] = [];
  partBytesMax = 0;
  /** Answers a request instead. @returns whether it did */
  disturb: (request: http.IncomingMessage, response: http.ServerResponse) => boolean = () => false;
  /** Discards the bytes: for backups larger than this process. */
  discards = false;
  private readonly parts = new Map<string, Map<number, Buffer>>();
  private readonly server = http.createServer((request, response) => void this.answer(request, response));

  async listen(): Promise<string> {
    this.server.listen(0, "127.0.0.1");
    await once(this.server, "listening");
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.server.closeAllConnections();
    this.server.close();
  }

  /** The backup as in the control plane's record. */
  stored(backupId: string, databaseName: string): StoredBackup {
    const { manifest } = this.found(backupId);
    return {
      backupId: manifest.backupId,
      attempt: 1,
      databaseName,
      sizeBytes: manifest.sizeBytes,
      sha256: manifest.sha256,
      fingerprintSha256: sha256(fingerprintText(manifest.fingerprint)),
    };
  }

  found(backupId: string): Kept {
    const kept = this.kept.get(backupId);
    if (!kept) throw new Error(`No backup ${backupId} was completed`);
    return kept;
  }

  private async answer(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const [, , , backupId = "", what = "", part] = (request.url ?? "").split("/");
    this.requests.push(
      `${request.method} ${what} ${String(request.headers[leaseHeaders.attempt.toLowerCase()])}`,
    );
    if (request.headers.authorization !== `Bearer ${this.token}`) return void response.writeHead(401).end();
    if (this.disturb(request, response)) return;
    const json = (body: unknown) => void response.end(JSON.stringify(body));
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    if (what === "upload") {
      this.parts.set(backupId, new Map());
      return json({ uploadId: `upload-${backupId}` });
    }
    if (what === "parts") {
      this.partBytesMax = Math.max(this.partBytesMax, body.length);
      if (body.length > partBytes || sha256(body) !== request.headers[partHashHeader.toLowerCase()])
        return void response.writeHead(400).end();
      this.parts.get(backupId)?.set(Number(part), this.discards ? Buffer.alloc(0) : body);
      return json({ etag: `part-${part}` });
    }
    if (what === "complete") {
      const { sizeBytes, fingerprint, etags, ...done } = UploadComplete.parse(JSON.parse(body.toString()));
      const parts = this.parts.get(backupId) ?? new Map<number, Buffer>();
      const data = Buffer.concat(etags.map((_, index) => parts.get(index + 1) ?? Buffer.alloc(0)));
      if (!this.discards && data.length !== sizeBytes) return void response.writeHead(400).end();
      const manifest = {
        backupId,
        accountId: "",
        databaseId: "",
        sizeBytes,
        fingerprint,
        sha256: done.sha256,
      };
      this.kept.set(backupId, { data, manifest: manifest as unknown as Manifest });
      return json({});
    }
    const kept = this.kept.get(backupId);
    if (!kept) return void response.writeHead(404).end();
    if (what === "manifest") {
      const ids = {
        accountId: "acc_001m80000000000000000000000",
        databaseId: "db_001m80000000000000000000000",
      };
      return json({ ...kept.manifest, ...ids });
    }
    const from = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1]);
    if (from >= kept.data.length) return void response.writeHead(416).end();
    const range = `bytes ${from}-${kept.data.length - 1}/${kept.data.length}`;
    response.writeHead(206, { "Content-Range": range }).end(kept.data.subarray(from));
  }
}
