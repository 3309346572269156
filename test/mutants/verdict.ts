/** What a test says of a mutant that it detects. */
export type Verdict = { status: "killed" | "timeout"; reason: string };

declare module "vitest" {
  interface TaskMeta {
    /** How often this test reaches which mutant. */
    hits?: Record<string, number>;
    /** The mutants that this test is the first to detect. */
    verdicts?: Record<string, Verdict>;
    /** The mutants with which this test passes. */
    survived?: string[];
    /** Why this test tried no further mutants. */
    unrepeatable?: string;
  }
  interface ProvidedContext {
    detectedMutants: string[];
    /** How many tests that reach a mutant have passed with it. */
    survivals: Record<string, number>;
    /** A mutant with which this many tests have passed is given up. */
    mostSurvivals: number;
    /** From then on, in milliseconds since 1970, tests run without mutants only. */
    endsAtMs: number;
  }
}
