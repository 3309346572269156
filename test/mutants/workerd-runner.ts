import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { relative, resolve } from "node:path";
import { inspect } from "node:util";
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

type Settings = { mostSurvivals: number; minutes: number; testNamePattern: string };

type Found = {
  endsAtMs: number;
  /** Test files that were begun: one that ended this process is not run again. */
  files: string[];
  tests: Record<string, TestResult>;
  hits: MutantCoverage["perTest"];
  detected: Record<string, Verdict & { test: string }>;
  /** How many tests have passed with a mutant. */
  survivals: Record<string, number>;
};

/** In Stryker's sandbox. Stryker starts a process that ended anew, and what was found before it did is not lost. */
const foundFile = "mutants-found.json";

/**
 * Stryker's test runner for what only workerd runs. Its own for vitest would start a workerd per mutant. This one has
 * every mutant tried while it asks for the coverage (test/worker/each-mutant.ts), one workerd per test file, and then answers from
 * memory.
 */
export class WorkerdRunner {
  readonly #log: Pick<Logger, "info" | "warn">;
  readonly #settings: Settings;
  readonly #found: Found;
  #vitest: Vitest | undefined;

  constructor(log: Pick<Logger, "info" | "warn">, settings: Settings) {
    this.#log = log;
    this.#settings = settings;
    this.#found = existsSync(foundFile)
      ? (JSON.parse(readFileSync(foundFile, "utf8")) as Found)
      : {
          endsAtMs: Date.now() + this.#settings.minutes * 60_000,
          files: [],
          tests: {},
          hits: {},
          detected: {},
          survivals: {},
        };
  }

  capabilities() {
    return { reloadEnvironment: false };
  }

  async init(): Promise<void> {
    this.#vitest = await createVitest("test", {
      project: ["worker"],
      watch: false,
      isolate: true,
      maxWorkers: 1,
      testNamePattern: this.#settings.testNamePattern,
      reporters: [{ onTestCaseResult: (one) => this.#read(one) }],
      onConsoleLog: () => false,
    });
    for (const { config } of this.#vitest.projects) config.runner = resolve("test/worker/each-mutant.ts");
  }

  async dryRun({ testFiles = [] }: Pick<DryRunOptions, "testFiles">): Promise<DryRunResult> {
    const vitest = this.#vitest as Vitest;
    const { files, tests, hits, detected, survivals, endsAtMs } = this.#found;
    for (const file of testFiles.filter((one) => !files.includes(one))) {
      files.push(file);
      const startedMs = performance.now();
      vitest.provide("detectedMutants", Object.keys(detected));
      vitest.provide("survivals", survivals);
      vitest.provide("mostSurvivals", this.#settings.mostSurvivals);
      vitest.provide("endsAtMs", endsAtMs);
      const { unhandledErrors } = await vitest.runTestSpecifications(
        vitest.projects.map((project) => project.createSpecification(file)),
      );
      for (const error of unhandledErrors) this.#log.warn(`${file}: ${inspect(error)}`);
      const tookSeconds = Math.round((performance.now() - startedMs) / 1000);
      this.#log.info(
        `${relative("", file)}: ${tookSeconds} s, ${Object.keys(detected).length} mutants detected so far`,
      );
    }
    return {
      status: DryRunStatus.Complete,
      tests: Object.values(tests),
      mutantCoverage: { static: {}, perTest: hits },
    };
  }

  #read(one: TestCase): void {
    const file = one.module.moduleId;
    const id = `${relative("", file)}#${one.fullName}`;
    if (one.result().state === "skipped") return;
    const { verdicts = {}, survived = [], hits = {}, unrepeatable } = one.meta();
    const { tests, detected, survivals } = this.#found;
    const { state, errors } = one.result();
    const told = { id, name: one.fullName, timeSpentMs: one.diagnostic()?.duration ?? 0, fileName: file };
    tests[id] = { ...told, status: state === "failed" ? TestStatus.Skipped : TestStatus.Success };
    this.#found.hits[id] = hits;
    for (const mutant of survived) survivals[mutant] = (survivals[mutant] ?? 0) + 1;
    for (const [mutant, verdict] of Object.entries(verdicts)) detected[mutant] = { ...verdict, test: id };
    if (unrepeatable) this.#log.warn(`${id} fails when it is repeated: ${unrepeatable}`);
    if (state === "failed")
      this.#log.warn(
        `${id} failed without a mutant and tried none: ${errors.map(({ message }) => message).join()}`,
      );
    writeFileSync(foundFile, JSON.stringify(this.#found));
  }

  outcomeOf(mutant: string): "detected" | "survived" | "untried" {
    const { detected, survivals } = this.#found;
    return detected[mutant] ? "detected" : survivals[mutant] === undefined ? "untried" : "survived";
  }

  async mutantRun({ activeMutant }: MutantRunOptions): Promise<MutantRunResult> {
    const verdict = this.#found.detected[activeMutant.id];
    const nrOfTests = this.#found.survivals[activeMutant.id];
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

class StrykerRunner extends WorkerdRunner implements TestRunner {
  static inject = tokens(commonTokens.logger, commonTokens.options);

  constructor(log: Logger, options: StrykerOptions) {
    super(log, options["workerd"] as Settings);
  }
}

export const strykerPlugins = [declareClassPlugin(PluginKind.TestRunner, "workerd", StrykerRunner)];
export const strykerValidationSchema = { properties: { workerd: { type: "object" } } };
