import type { DatabaseSpec } from "../../../protocol/agent/jobs.ts";
import { certificateFile, keyFile, type DatabaseEngine, type Run } from "../database-engine.ts";
import { redisVerifier } from "../verifiers.ts";

const admin = "berth";
const aclFile = "users.acl";
const tlsPort = 6380;

/** Everything but what manages the server itself; what only tells about it is allowed. */
const rights = "~* &* +@all -@admin +client +slowlog +latency +lastsave +acl|whoami";

const user = (username: string, password: string, allowed: string): string =>
  `${username} reset on #${redisVerifier(password)} ${allowed}`;

const users = ({ adminPassword, logins }: DatabaseSpec): string[] => [
  user(admin, adminPassword, "~* &* +@all"),
  ...logins.map(({ username, password }) => user(username, password, rights)),
];

const redisCli = (adminPassword: string, input: string) => ({
  command: ["redis-cli", "--user", admin, "--no-auth-warning"],
  env: [`REDISCLI_AUTH=${adminPassword}`],
  input,
});

/** Redis says in words, not by its client's exit, that a command failed. */
async function say(run: Run, adminPassword: string, commands: string[]): Promise<void> {
  const answers = await run(redisCli(adminPassword, commands.map((line) => `${line}\n`).join("")));
  const refusal = answers.split("\n").find((line) => line !== "" && !/^(?:OK|\d+)$/.test(line));
  if (refusal !== undefined) throw new Error(refusal);
}

export const redis: DatabaseEngine = {
  dataPath: "/data",
  dataFiles: ["appendonlydir", "appendonly.aof", aclFile],
  env: () => [],
  command({ memoryMb }) {
    return [
      "redis-server",
      "--dir",
      "/data",
      "--appendonly",
      "yes",
      // The log of every change is the copy on disk; a dump beside it would only cost memory.
      "--save",
      "",
      "--maxmemory",
      `${Math.floor(memoryMb * 0.75)}mb`,
      "--maxmemory-policy",
      "noeviction",
      "--aclfile",
      `/data/${aclFile}`,
    ];
  },
  // A port of its own, the only one that leads there from outside.
  guarded: () => [
    "--tls-port",
    String(tlsPort),
    "--tls-cert-file",
    certificateFile,
    "--tls-key-file",
    keyFile,
    "--tls-auth-clients",
    "no",
    "--tls-protocols",
    "TLSv1.2 TLSv1.3",
  ],
  tlsPort,
  user: "redis",
  renew: (spec, run) =>
    say(run, spec.adminPassword, [`CONFIG SET tls-cert-file ${certificateFile} tls-key-file ${keyFile}`]),
  stopSignal: "SIGTERM",
  file: (spec) => ({
    name: aclFile,
    text: ["default off", ...users(spec)].map((line) => `user ${line}\n`).join(""),
  }),
  ready: { program: ({ adminPassword }) => redisCli(adminPassword, "PING\n"), says: "PONG" },
  async arrange(spec, run) {
    const { adminPassword, logins } = spec;
    await say(
      run,
      adminPassword,
      users(spec).map((line) => `ACL SETUSER ${line}`),
    );
    const kept = new Set(["default", admin, ...logins.map(({ username }) => username)]);
    const known = (await run(redisCli(adminPassword, "ACL USERS\n"))).split("\n").filter(Boolean);
    // Deleting a user ends its connections.
    const gone = known.filter((name) => !kept.has(name)).map((name) => `ACL DELUSER ${name}`);
    await say(run, adminPassword, [...gone, "ACL SAVE"]);
  },
  version: async ({ adminPassword }, run) =>
    /^redis_version:(.*)$/m.exec(await run(redisCli(adminPassword, "INFO server\n")))?.[1] ?? "",
};
