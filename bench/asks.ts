import http from "node:http";

/**
 * Asks an address at a steady rate until its input ends, whatever became of earlier requests, then prints how long each answer took, in
 * milliseconds, and how many there were none of. A process of its own, which nothing else that a benchmark does holds up; see
 * ask-apart.ts. Usage: asks.ts <url> <times a second>
 */
const [address = "", perSecond = ""] = process.argv.slice(2);
const { port, host, pathname } = new URL(address);
const agent = new http.Agent({ keepAlive: true });
const tookMs: number[] = [];
let failed = 0;
const pending = new Set<http.ClientRequest>();
const timer = setInterval(
  () => {
    const startedMs = performance.now();
    // No resolver need know the names of sites.
    const request = http
      .get({ host: "127.0.0.1", port, path: pathname, headers: { Host: host }, agent }, (response) => {
        response.resume().on("error", () => undefined);
        response.on("close", () => {
          if (response.complete && response.statusCode === 200) tookMs.push(performance.now() - startedMs);
          else failed++;
        });
      })
      .on("error", () => failed++)
      .on("close", () => {
        pending.delete(request);
        endIfDone();
      });
    pending.add(request);
  },
  1000 / Number(perSecond),
);
let isOver = false;
process.stdin.resume().on("end", () => {
  clearInterval(timer);
  isOver = true;
  endIfDone();
});

/** The slowest answers are waited for, too. */
function endIfDone(): void {
  if (!isOver || pending.size > 0) return;
  console.log(JSON.stringify({ tookMs, failed }));
  agent.destroy();
}
