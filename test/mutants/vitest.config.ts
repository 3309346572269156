import { defineConfig } from "vitest/config";

/** What is run for each mutant: the tests in Node that ask rules and schemas, without those that start programs. */
export default defineConfig({
  test: {
    include: ["test/{domain,protocol}/**/*.test.ts"],
    exclude: ["test/domain/{supervisor,wrangler,install-script,stripe-server,test-inputs}.test.ts"],
    testTimeout: 20_000,
    // All 10,000 runs take half a minute, and there are a thousand mutants.
    env: { BERTH_SIMULATION_RUNS: "300" },
  },
});
