import { relative, resolve } from "node:path";
import type { StrykerOptions, MutantCoverage } from "@stryker-mutator/api/core";
import type { Logger } from "@stryker-mutator/api/logging";
import { commonTokens, declareClassPlugin, PluginKind, tokens } from "@stryker-mutator/api/plugin";
import {
  DryRunStatus,
  MutantRunStatus,
  TestStatus,
  type DryRunOptions,
  type DryRunResult,
  type MutantRunOptions,
  type MutantRunResult,
  type TestResult,
  type TestRunner,
} from "@stryker-mutator/api/test-runner";
import { createVitest, type TestCase, type Vitest } from "vitest/node";
import type { Verdict } from "./verdict.ts";

/**
 * Stryker's test runner for what only workerd runs. Its own for vitest would start a workerd per mutant. This one has
 * every mutant tried while it asks for the coverage (test/worker/each-mutant.ts), one workerd per test file, and then answers from
 * memory.
 */
class WorkerdRunner implements TestRunner {
  static inject = tokens(commonTokens.logger, commonTokens.options);
  readonly #log: Logger;
  readonly #detected = new Map<string, Verdict & { test: string }>();
  readonly #survivals = new Map<string, number>();
  readonly #settings: { mostSurvivals: number; minutes: number };
  #vitest: Vitest | undefined;

  constructor(log: Logger, options: StrykerOptions) {
    this.#log = log;
    this.#settings = options["workerd"] as { mostSurvivals: number; minutes: number };
  }

  capabilities() {
    return { reloadEnvironment: false };
  }

  async init(): Promise<void> {
    this.#vitest = await createVitest("test", {
      project: ["worker"],
      watch: false,
      maxWorkers: 1,
      reporters: [{}],
      onConsoleLog: () => false,
    });
    for (const { config } of this.#vitest.projects) config.runner = resolve("test/worker/each-mutant.ts");
  }

  async dryRun({ testFiles = [] }: DryRunOptions): Promise<DryRunResult> {
    const vitest = this.#vitest as Vitest;
    const endsAtMs = Date.now() + this.#settings.minutes * 60_000;
    const tests: TestResult[] = [];
    const mutantCoverage: MutantCoverage = { static: {}, perTest: {} };
    for (const file of testFiles) {
      const startedMs = performance.now();
      vitest.provide("detectedMutants", [...this.#detected.keys()]);
      vitest.provide("survivals", Object.fromEntries(this.#survivals));
      vitest.provide("mostSurvivals", this.#settings.mostSurvivals);
      vitest.provide("endsAtMs", endsAtMs);
      const { testModules, unhandledErrors } = await vitest.runTestSpecifications(
        vitest.projects.map((project) => project.createSpecification(file)),
      );
      // It answers with the modules of earlier files, too.
      const modules = testModules.filter(({ moduleId }) => moduleId === file);
      const cases = modules.flatMap((module) => [...module.children.allTests()]);
      for (const error of unhandledErrors) this.#log.warn(`${file}: ${String(error)}`);
      for (const one of cases) {
        tests.push(this.#read(one, file));
        mutantCoverage.perTest[`${relative("", file)}#${one.fullName}`] = one.meta().hits ?? {};
      }
      const tookSeconds = Math.round((performance.now() - startedMs) / 1000);
      this.#log.info(
        `${relative("", file)}: ${cases.length} tests in ${tookSeconds} s, ${this.#detected.size} mutants detected so far`,
      );
    }
    return { status: DryRunStatus.Complete, tests, mutantCoverage };
  }

  #read(one: TestCase, file: string): TestResult {
    const id = `${relative("", file)}#${one.fullName}`;
    const { verdicts = {}, survived = [], unrepeatable } = one.meta();
    for (const mutant of survived) this.#survivals.set(mutant, (this.#survivals.get(mutant) ?? 0) + 1);
    if (unrepeatable) this.#log.warn(`${id} fails when it is repeated: ${unrepeatable}`);
    for (const [mutant, verdict] of Object.entries(verdicts))
      this.#detected.set(mutant, { ...verdict, test: id });
    const { state, errors } = one.result();
    const told = { id, name: one.fullName, timeSpentMs: one.diagnostic()?.duration ?? 0, fileName: file };
    if (state !== "failed") return { ...told, status: TestStatus.Success };
    this.#log.warn(
      `${id} failed without a mutant and tried none: ${errors?.map(({ message }) => message).join()}`,
    );
    return { ...told, status: TestStatus.Skipped };
  }

  async mutantRun({ activeMutant }: MutantRunOptions): Promise<MutantRunResult> {
    const verdict = this.#detected.get(activeMutant.id);
    const nrOfTests = this.#survivals.get(activeMutant.id);
    if (!verdict && nrOfTests === undefined)
      return { status: MutantRunStatus.Error, errorMessage: "No test was repeated with it" };
    if (!verdict) return { status: MutantRunStatus.Survived, nrOfTests: nrOfTests ?? 0 };
    const { status, reason, test } = verdict;
    if (status === "timeout") return { status: MutantRunStatus.Timeout, reason };
    return { status: MutantRunStatus.Killed, killedBy: [test], failureMessage: reason, nrOfTests: 1 };
  }

  async dispose(): Promise<void> {
    await this.#vitest?.close();
  }
}

export const strykerPlugins = [declareClassPlugin(PluginKind.TestRunner, "workerd", WorkerdRunner)];
export const strykerValidationSchema = { properties: { workerd: { type: "object" } } };
