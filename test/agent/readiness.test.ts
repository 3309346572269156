import net, { type AddressInfo } from "node:net";
import { afterEach, expect, it } from "vitest";
import type { ContainerState, Engine } from "../../agent/docker/engine.ts";
import { devServerOf } from "../../agent/sites/dev-server.ts";
import { Standstill, type Activity } from "../../agent/sites/standstill.ts";
import { exitReason, waitUntilHealthy } from "../../agent/sites/readiness.ts";

const engine = { firstExit: () => new Promise(() => undefined) } as unknown as Engine;
const container = { id: "c1", pid: process.pid } as ContainerState;

let server: net.Server | undefined;
const sockets = new Set<net.Socket>();
let openAtMost: number;
afterEach(() => {
  for (const socket of sockets) socket.destroy();
  server?.close();
});

/** An app that does this with each connection, asked for /health for a second. */
async function ask(answer: (socket: net.Socket) => void): Promise<void> {
  openAtMost = 0;
  const own = net.createServer((socket) => {
    sockets.add(socket);
    openAtMost = Math.max(openAtMost, sockets.size);
    socket.on("error", () => undefined).on("close", () => sockets.delete(socket));
    socket.resume();
    answer(socket);
  });
  server = own;
  await new Promise<void>((resolve) => own.listen(0, "0.0.0.0", resolve));
  const probe = {
    address: "127.0.0.1",
    port: (own.address() as AddressInfo).port,
    path: "/health",
    hostname: "site-1.example.com",
  };
  await waitUntilHealthy(engine, container, probe, 1, new AbortController().signal);
}

it("an app that never ends the head of its answer is given up in its time", async () => {
  const before = performance.now();
  const asked = ask((socket) => {
    socket.write("HTTP/1.1 200 OK\r\nX: ");
    const drip = setInterval(() => socket.write("x"), 100);
    socket.on("close", () => clearInterval(drip));
  });
  await expect(asked).rejects.toThrow(/\/health did not succeed within 1 s \(it gave no answer\)/);
  expect(performance.now() - before).toBeLessThan(30_000);
});

it("an app that answers to its site's name only is asked by that", async () => {
  await ask((socket) => {
    socket.once("data", (request: Buffer) => {
      const isAskedByName = /^Host: site-1\.example\.com\r$/im.test(request.toString());
      socket.end(`HTTP/1.1 ${isAskedByName ? "200 OK" : "400 Bad Request"}\r\nContent-Length: 0\r\n\r\n`);
    });
  });
});

it("of an answer that never ends only its status is read", async () => {
  const asked = ask((socket) => {
    socket.write("HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n");
  });
  await expect(asked).rejects.toThrow(/\/health did not succeed within 1 s \(it answers 500\)/);
  expect(openAtMost).toBeLessThan(5);
});

it("no part of a secret is in the last lines of an app that exited, wherever they are cut", async () => {
  const secret = "first-half/second-half";
  const found = {
    inspectContainer: () =>
      Promise.resolve({ env: [`TOKEN=${secret}`], labels: { "berth.secrets": "TOKEN" }, oomKilled: false }),
    ranOutOfMemory: () => Promise.resolve(false),
    lastLines: () => Promise.resolve([`${secret}${"x".repeat(1490)}`]),
  } as unknown as Engine;
  const reason = await exitReason(found, "c1", 1, performance.now());
  expect(reason).toContain("xxx");
  expect(reason).not.toContain("half");
});

it("an app that ends well all the same does not serve: as one that goes on in the background", async () => {
  const ended = {
    inspectContainer: () => Promise.resolve(null),
    lastLines: () => Promise.resolve(["daemonized"]),
  } as unknown as Engine;
  expect(await exitReason(ended, "c1", 0, performance.now())).toMatch(
    /exited with code 0 after [\d.]+ s: let it keep running, in the foreground, or let a schedule or a command run it .*\. Its last lines: daemonized$/,
  );
});

it("a signal that ended an app is named", async () => {
  const ended = {
    inspectContainer: () => Promise.resolve(null),
    lastLines: () => Promise.resolve([]),
  } as unknown as Engine;
  expect(await exitReason(ended, "c1", 139, performance.now())).toContain(
    "exited with code 139 (SIGSEGV) after",
  );
});

it("an app that ends while a connection to it hangs is told of at once", async () => {
  const ended = {
    firstExit: () => Promise.resolve(3),
    inspectContainer: () => Promise.resolve(null),
    lastLines: () => Promise.resolve([]),
  } as unknown as Engine;
  const own = net.createServer((socket) => void sockets.add(socket));
  server = own;
  await new Promise<void>((resolve) => own.listen(0, "0.0.0.0", resolve));
  const { port } = own.address() as AddressInfo;
  const before = performance.now();
  const probe = { address: "127.0.0.1", port, path: "/health", hostname: undefined };
  const asked = waitUntilHealthy(ended, container, probe, 50, new AbortController().signal);
  await expect(asked).rejects.toThrow("exited with code 3");
  expect(performance.now() - before).toBeLessThan(30_000);
});

it("an app serves, also where the engine does not tell whether it ends", async () => {
  const silent = { firstExit: () => Promise.reject(new Error("gone")) } as unknown as Engine;
  const own = net.createServer((socket) => void socket.end("HTTP/1.1 500 No\r\n\r\n"));
  server = own;
  await new Promise<void>((resolve) => own.listen(0, "0.0.0.0", resolve));
  const { port } = own.address() as AddressInfo;
  const probe = { address: "127.0.0.1", port, path: null, hostname: undefined };
  await waitUntilHealthy(silent, container, probe, 20, new AbortController().signal);
});

it("an app that listens for IPv6 only is told so, and not that nothing listens", async () => {
  const own = net.createServer();
  server = own;
  await new Promise<void>((resolve) => own.listen({ port: 0, host: "::", ipv6Only: true }, resolve));
  const { port } = own.address() as AddressInfo;
  for (const path of [null, "/health"]) {
    const probe = { address: "127.0.0.1", port, path, hostname: undefined };
    await expect(waitUntilHealthy(engine, container, probe, 1, new AbortController().signal)).rejects.toThrow(
      `The app listens on port ${port}, but not at its IPv4 address: let it listen on 0.0.0.0.`,
    );
  }
});

it.each([
  [["sh", "-c", "vite --port 3001"], [3001], "vite"],
  [["sh", "-c", "TOKEN=secret npx vite"], [3001], "vite"],
  [["sh", "-c", "export TOKEN=secret && vite"], [3001], "vite"],
  [["node", "/app/node_modules/.bin/vite"], [5173], "vite"],
  [["node", "/app/node_modules/.bin/ng", "serve"], [4200], "ng serve"],
  [["node", "/app/node_modules/.bin/parcel", "index.html"], [1234], "parcel"],
  [["node", "scripts/dev.js"], [5173], "Vite"],
  [["node", "server.js"], [8081], null],
])("a development server is known by its command, or its port: %j at %j", (command, ports, told) => {
  expect(devServerOf([["npm", "start"], command], ports)).toBe(told);
});

it("an app that listens has come to rest once nothing changes for some seconds, in which it does next to nothing", () => {
  const listeners = [{ port: 3001, loopbackOnly: false }];
  const idle = { listeners, processes: ["1"], cpuMs: 0 };
  const restsAt = (activityAt: (atMs: number) => Activity): number | undefined => {
    const standstill = new Standstill();
    for (let atMs = 0; atMs < 20_000; atMs += 500) if (standstill.take(activityAt(atMs), atMs)) return atMs;
    return undefined;
  };
  expect(restsAt(() => idle)).toBe(4000);
  expect(restsAt(() => ({ ...idle, listeners: [] }))).toBeUndefined();
  expect(restsAt((atMs) => ({ ...idle, cpuMs: Math.min(atMs, 3000) }))).toBe(7000);
  expect(restsAt((atMs) => ({ ...idle, processes: ["1", String(Math.floor(atMs / 2000))] }))).toBeUndefined();
});

it("an app that does not speak HTTP is told so", async () => {
  const asked = ask((socket) => socket.end("SSH-2.0-OpenSSH_9.6\r\n"));
  await expect(asked).rejects.toThrow(/did not succeed within 1 s \(it does not answer by plain HTTP\)/);
});

it.each([
  [
    "Rails without a key",
    "ArgumentError: Missing `secret_key_base` for 'production' environment",
    /RAILS_MASTER_KEY/,
  ],
  [
    "Django without a key",
    "django.core.exceptions.ImproperlyConfigured: The SECRET_KEY setting must not be empty.",
    /SECRET_KEY/,
  ],
  [
    "Django in production",
    "CommandError: You must set settings.ALLOWED_HOSTS if DEBUG is False.",
    /ALLOWED_HOSTS/,
  ],
  ["a database that is elsewhere", "Error: connect ECONNREFUSED 127.0.0.1:5432", /DATABASE_URL/],
  [
    "a package that Node ends",
    "3: 0x81169b node::RemoveEnvironmentCleanupHook(v8::Isolate*, void (*)(void*), void*) [node]",
    /\.nvmrc, such as 22/,
  ],
  [
    "a program of another processor",
    "/bin/sh: 1: /app/server: Exec format error",
    /built for another processor/,
  ],
  ["a script read as a program's", "/app/server: 1: ELF: not found", /built for another processor/],
  [
    "Windows line ends",
    "[FATAL tini (7)] exec /app/start.sh failed: No such file or directory",
    /\/app\/start\.sh.*its first line names.*Windows line ends/,
  ],
  ["Windows line ends, by a shell", "/bin/sh: 1: ./start.sh: not found", /\.\/start\.sh.*Windows line ends/],
  [
    "Windows line ends, by env",
    "/usr/bin/env: 'python3\\r': No such file or directory",
    /has no program python3: install it/,
  ],
  [
    "a program that is not there",
    "[FATAL tini (8)] exec gunicorn failed: No such file or directory",
    /the image has no program gunicorn: install it/,
  ],
  [
    "a program that a shell does not find",
    "/bin/sh: 1: gunicorn: not found",
    /no program gunicorn: install it/,
  ],
  [
    "a program that Bash does not find",
    "bash: line 1: uvicorn: command not found",
    /no program uvicorn: install/,
  ],
  [
    "a file that is none to run",
    "[FATAL tini (7)] exec /app/start.sh failed: Permission denied",
    /\/app\/start\.sh.*chmod \+x/,
  ],
  [
    "a library",
    "/app/server: error while loading shared libraries: libpq.so.5: cannot open shared object file",
    /libpq\.so\.5: name its Debian package, probably libpq5,/,
  ],
  ["anything else", "TypeError: x is not a function", /: correct it or its start command\./],
])("what an app lacks that came up elsewhere is said first: %s", async (_, line, advice) => {
  const ended = {
    inspectContainer: () => Promise.resolve(null),
    lastLines: () => Promise.resolve(["Traceback:", line]),
  } as unknown as Engine;
  const reason = await exitReason(ended, "c1", 1, performance.now());
  expect(reason).toMatch(advice);
  expect(reason).toContain("Its last lines: Traceback:");
});
