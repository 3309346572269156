import http from "node:http";

/**
 * Asks an address fifty times a second until its input ends, then prints how long each answer took, in milliseconds: a process of its
 * own, which nothing else that a benchmark does holds up. Usage: asks.ts <url>
 */
const [url = ""] = process.argv.slice(2);
const agent = new http.Agent({ keepAlive: true });
const tookMs: number[] = [];
const timer = setInterval(() => {
  const startedMs = performance.now();
  http.get(url, { agent }, (response) =>
    response.resume().on("end", () => tookMs.push(performance.now() - startedMs)),
  );
}, 20);
process.stdin.resume().on("end", () => {
  clearInterval(timer);
  agent.destroy();
  console.log(JSON.stringify(tookMs));
});
