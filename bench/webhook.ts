import { randomBytes } from "node:crypto";
import http from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { openSocket, type Socket } from "../agent/socket.ts";
import type { FromAgent, ToAgent } from "../protocol/agent/messages.ts";
import { call, request } from "../scripts/lib/client.ts";
import { deriveKey, webhookSegment } from "../worker/domain/tokens.ts";
import { median } from "./median.ts";
import { startWorkerd } from "./workerd.ts";

/**
 * The time from a POST to a site's deploy webhook to the job's message on its host's socket; the host does nothing
 * else. With and without the cost of opening a connection, on a busy machine and on one that was idle for a moment.
 * `GET /health`, requested at the same pace in the same way, shows the machine's share.
 */
const rounds = 200;
const pausesMs = [25, 4];
const connections = { new: undefined, open: new http.Agent({ keepAlive: true, maxSockets: 1 }) };
const workerd = await startWorkerd();
const { secretKey, setupToken, siteUrl } = workerd;

/** A host that ends every job at once. */
class Host {
  private socket!: Socket;
  private readonly offers: number[] = [];
  private waiting: (() => void) | undefined;
  private acknowledged: (() => void) | undefined;

  async connect(token: string): Promise<void> {
    const address = `${siteUrl.replace("http", "ws")}/agent/connect`;
    const credentials = { token, instance: "bench" };
    await new Promise<void>((resolve, reject) => {
      openSocket(address, credentials, {
        onOpen: (socket) => {
          this.socket = socket;
          const facts = { cpuCount: 2, memoryMb: 16_384 };
          this.send({
            type: "hello",
            protocol: 1,
            agentVersion: "bench",
            facts,
            slots: 1,
            lostSites: [],
            running: [],
            finished: [],
          });
        },
        onText: (text) => {
          const message = JSON.parse(text) as ToAgent;
          if (message.type === "welcome")
            this.send({ type: "ready", free: 1, freeCommands: 0, freeShort: 0 });
          if (message.type === "welcome") resolve();
          if (message.type === "ack") this.acknowledged?.();
          if (message.type === "job") this.take(message);
        },
        onEnd: (end) => reject(new Error(`The host's link ended: ${JSON.stringify(end)}`)),
      });
    });
  }

  /** The time at which the next offer arrived. */
  async offered(): Promise<number> {
    if (this.offers.length === 0) await new Promise<void>((resolve) => (this.waiting = resolve));
    return this.offers.shift() ?? Number.NaN;
  }

  /** Resolves when the control plane has recorded the result of the current job. */
  settled(): Promise<void> {
    return new Promise((resolve) => (this.acknowledged = resolve));
  }

  close(): void {
    this.socket.close(1000);
  }

  private take({ job, attempt }: Extract<ToAgent, { type: "job" }>): void {
    this.offers.push(performance.now());
    this.waiting?.();
    const image = `sha256:${"0".repeat(64)}`;
    const durations = { clone: null, build: 1, start: 1, swap: 1 };
    const result = { commit: null, commitMessage: null, imageDigest: image, imageId: image, buildKey: null };
    this.send({ type: "done", jobId: job.id, attempt, result: { ...result, durations } });
    this.send({ type: "ready", free: 1, freeCommands: 0, freeShort: 0 });
  }

  private send(message: FromAgent): void {
    this.socket.send(JSON.stringify(message));
  }
}

try {
  const base = `${siteUrl}/api/v1`;
  const { body: owner } = await call<{ apiKey: string }>("POST", `${siteUrl}/setup`, setupToken, {
    email: "bench@example.com",
    password: randomBytes(16).toString("base64url"),
    name: "Bench",
  });
  const { body: created } = await call<{ token: string }>("POST", `${base}/hosts`, owner.apiKey, {
    name: "bench",
  });
  const host = new Host();
  await host.connect(created.token);
  const hooks: string[] = [];
  // Each site accepts 120 deliveries a minute.
  for (
    let made = 0;
    made < Math.ceil((rounds * pausesMs.length * Object.keys(connections).length) / 100);
    made++
  ) {
    const { body: site } = await call<{ siteId: string; invoiceToken: string }>(
      "POST",
      `${base}/sites`,
      owner.apiKey,
      { name: `bench-${made}`, deployType: "image", image: "example.com/bench:1" },
    );
    const firstEnded = host.settled();
    await call("POST", `${siteUrl}/invoice/${site.invoiceToken}/pay`, owner.apiKey);
    await host.offered();
    await firstEnded;
    const segment = await webhookSegment(deriveKey(secretKey, "deploy-webhook"), site.siteId, 1);
    hooks.push(`${siteUrl}/webhooks/deploy/${segment}`);
  }
  let next = 0;
  console.log(`\nDeploy webhook, one at a time, median of ${rounds}\n`);
  console.log("| one every, ms | connection | GET /health, ms | answered, ms | job on the host, ms |");
  console.log("|---|---|---|---|---|");
  for (const pauseMs of pausesMs)
    for (const [name, agent] of Object.entries(connections)) {
      const [healthMs, offeredMs, answeredMs]: [number[], number[], number[]] = [[], [], []];
      const connection = agent ? { agent } : {};
      for (let round = 0; round < rounds; round++) {
        const ended = host.settled();
        const started = performance.now();
        const answer = request(hooks[next++ % hooks.length] ?? "", { method: "POST", ...connection });
        const [offeredAt, status] = await Promise.all([
          host.offered(),
          answer.then(({ status }) => {
            answeredMs.push(performance.now() - started);
            return status;
          }),
        ]);
        if (status !== 202) throw new Error(`The webhook answered ${status}`);
        offeredMs.push(offeredAt - started);
        await ended;
        // The host requests more work once it is done; a webhook rarely arrives at that very moment.
        await delay(pauseMs);
        const asked = performance.now();
        await request(`${siteUrl}/health`, connection);
        healthMs.push(performance.now() - asked);
        await delay(pauseMs);
      }
      const shown = [healthMs, answeredMs, offeredMs].map((each) => median(each).toFixed(1));
      console.log(`| ${pauseMs} | ${name} | ${shown.join(" | ")} |`);
    }
  connections.open.destroy();
  host.close();
} finally {
  await workerd.dispose();
}
