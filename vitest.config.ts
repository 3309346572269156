import { cloudflareTest, readD1Migrations } from "@cloudflare/vitest-plugin";
import { mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { defineConfig } from "vitest/config";
import { embeddedBindings } from "./scripts/lib/embedded-database.ts";
import { bundledWorker, bundleName } from "./test/support/bundled-worker.ts";
import { serviceCount } from "./test/support/embedded-service.ts";
import { SlowestFirst } from "./test/support/slowest-first.ts";

// Wrangler wants the folder that wrangler.toml names; tests bring their own files.
mkdirSync("dist", { recursive: true });

/** What tests provoke is no news; `BERTH_LOG=on npm test` shows it. */
const agentLog = process.env["BERTH_LOG"] ?? "off";

/** Each file has a service for itself. */
const services = Math.max(serviceCount, 1);

/** Worker tests run on workerd's D1, or on the database of `npm start`: worker/embedded. */
const database =
  process.env["BERTH_DATABASE"] === "embedded"
    ? { main: "worker/embedded/worker.ts", miniflare: embeddedBindings({}) }
    : {};

/** Gives waits for conditions the same time as `expect.poll` below. */
const patience = "test/support/patience.ts";
const expect = { poll: { timeout: 30_000 } };

/** The tiers; test/README.md says which proves what. Time limits are for what hangs: shared machines can be slow for minutes. */
export default defineConfig({
  test: {
    sequence: { sequencer: SlowestFirst },
    projects: [
      {
        test: {
          name: "unit",
          // Their folders may be in the project's own, and `berth link` would write to its Git configuration.
          env: { BERTH_LOG: agentLog, GIT_CEILING_DIRECTORIES: tmpdir() },
          include: ["test/{domain,protocol,agent,client,cli}/**/*.test.ts"],
          exclude: ["**/*.engine.test.ts"],
          setupFiles: ["test/support/outside.ts", patience],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          expect,
        },
      },
      {
        plugins: [
          bundledWorker(),
          cloudflareTest({
            wrangler: { configPath: "./wrangler.toml" },
            ...database,
            miniflare: {
              ...database.miniflare,
              modulesRules: [{ type: "ESModule", include: [`**/${bundleName}`] }],
              bindings: {
                TEST_MIGRATIONS: await readD1Migrations("drizzle"),
                SITE_URL: "http://127.0.0.1:8787",
                WEBHOOK_HOST: "http://127.0.0.1:8787",
                SITES_ORIGIN: "http://localhost:8080",
                SECRET_KEY: "A".repeat(43),
                SECRET_KEYS_OLD: "B".repeat(43),
                SETUP_TOKEN: "test-setup-token-test-setup-token",
                MAIL_ENDPOINT: "https://mail.test/emails",
                BERTH_SEED: process.env["BERTH_SEED"] ?? "0",
                // `npm run check` takes a few seeds only.
                BERTH_SIMULATION_SECONDS: process.env["BERTH_SIMULATION_SECONDS"] ?? "60",
                MODEL_URL: "https://model.test/v1",
                MODEL_NAME: "scripted",
                CHAT_PRICES: JSON.stringify({ scripted: { prompt: 0.01, completion: 0.1 } }),
                GITHUB_CLIENT_ID: "github-id",
                GITHUB_CLIENT_SECRET: "github-secret",
              },
            },
          }),
        ],
        test: {
          name: "worker",
          // A workerd takes seconds to start: test/worker/migrate.ts begins each file with an empty installation instead.
          isolate: false,
          include: ["test/worker/**/*.test.ts"],
          // Generated requests by the dozen, on machines that do other things as well.
          testTimeout: 120_000,
          hookTimeout: 120_000,
          expect,
          setupFiles: ["test/worker/migrate.ts", patience],
          // With it vitest sends a new workerd all modules that it has cached, in one message: workerd ends at one of more than its limit.
          fsModuleCache: false,
        },
      },
      {
        test: {
          name: "engine",
          env: { BERTH_LOG: agentLog },
          include: ["test/agent/**/*.engine.test.ts"],
          testTimeout: 300_000,
          hookTimeout: 300_000,
          setupFiles: [patience],
          expect,
          // They mostly wait, and each file is an agent of its own on the engine.
          maxWorkers: 3,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          name: "conformance",
          include: ["test/conformance/**/*.test.ts"],
          testTimeout: 300_000,
          hookTimeout: 300_000,
          setupFiles: [patience],
          expect,
          maxWorkers: services,
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: {
          name: "e2e",
          include: ["test/e2e/**/*.test.ts"],
          testTimeout: 600_000,
          hookTimeout: 600_000,
          setupFiles: [patience],
          expect,
          maxWorkers: services,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
