import { redisDataShare, type DatabaseSpec } from "../../../protocol/agent/jobs.ts";
import { certificateFile, keyFile, type DatabaseEngine, type Run } from "../database-engine.ts";
import { redisVerifier } from "../verifiers.ts";

const admin = "berth";
const aclFile = "users.acl";
const tlsPort = 6380;

/** Everything except managing the server itself; reading its state is allowed. */
const rights = "~* &* +@all -@admin +client +slowlog +latency +lastsave +acl|whoami";

const user = (username: string, password: string, allowed: string): string =>
  `${username} reset on #${redisVerifier(password)} ${allowed}`;

const users = ({ adminPassword, logins }: DatabaseSpec): string[] => [
  user(admin, adminPassword, "~* &* +@all"),
  ...logins.map(({ username, password }) => user(username, password, rights)),
];

/** Redis's own client or Valkey's, whose image names its user and programs after itself. */
export const redisClient = (...options: string[]): string[] => [
  "sh",
  "-c",
  'exec "$(command -v redis-cli || command -v valkey-cli)" "$@"',
  "sh",
  ...options,
];
export const asAdmin = ["--user", admin, "--no-auth-warning"];
export const adminEnv = (adminPassword: string): string[] =>
  ["REDISCLI_AUTH", "VALKEYCLI_AUTH"].map((name) => `${name}=${adminPassword}`);

const redisCli = (adminPassword: string, input: string) => ({
  command: redisClient(...asAdmin),
  env: adminEnv(adminPassword),
  input,
});

/** Redis reports failed commands in its replies, not by its client's exit code. */
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
      // The image's entrypoint adds the server's name.
      "--dir",
      "/data",
      "--appendonly",
      "yes",
      // The append-only file is the copy on disk; snapshots would only cost memory.
      "--save",
      "",
      "--maxmemory",
      `${Math.floor(memoryMb * redisDataShare)}mb`,
      "--maxmemory-policy",
      "noeviction",
      "--aclfile",
      `/data/${aclFile}`,
    ];
  },
  // A separate port, the only one that is reachable from outside.
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
  users: ["redis", "valkey"],
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
    // Deleting a user closes its connections.
    const gone = known.filter((name) => !kept.has(name)).map((name) => `ACL DELUSER ${name}`);
    await say(run, adminPassword, [...gone, "ACL SAVE"]);
  },
  async version({ adminPassword }, run) {
    const info = await run(redisCli(adminPassword, "INFO server\n"));
    // Valkey reports both versions.
    const versionOf = (name: string) => new RegExp(`^${name}_version:(.*)$`, "m").exec(info)?.[1];
    return versionOf("valkey") ?? versionOf("redis") ?? "";
  },
};
