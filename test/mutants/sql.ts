import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { mutateSql, type SqlMutant } from "./sql-mutants.ts";

// `npm run mutants:sql -- --mutate 'worker/billing/terms/*.ts' test/worker/term-steps.test.ts`: changes the SQL of these
// files in a copy of the project, one condition at a time, and lists the changes that these tests do not detect.
const { values, positionals: testFiles } = parseArgs({
  allowPositionals: true,
  options: {
    mutate: { type: "string", multiple: true, default: ["worker/billing/**/*.ts"] },
    minutes: { type: "string", default: "60" },
    mostSurvivals: { type: "string", default: "40" },
  },
});

const project = process.cwd();
const copy = resolve(".berth/sql-mutants");
rmSync(copy, { recursive: true, force: true });
mkdirSync(copy, { recursive: true });
for (const name of globSync("*", { exclude: ["node_modules", "dist", "bench", "examples"] }))
  cpSync(name, resolve(copy, name), { recursive: true });
symlinkSync(resolve("node_modules"), resolve(copy, "node_modules"));
if (existsSync("mutants-found.json")) cpSync("mutants-found.json", resolve(copy, "mutants-found.json"));
process.chdir(copy);

const mutants: Record<string, SqlMutant> = {};
for (const file of values.mutate.flatMap((pattern) => globSync(pattern)).toSorted())
  writeFileSync(file, mutateSql(readFileSync(file, "utf8"), file, mutants));
console.log(`${Object.keys(mutants).length} mutants`);

// From the copy: it names files of its own folder.
const { WorkerdRunner } = (await import(
  resolve("test/mutants/workerd-runner.ts")
)) as typeof import("./workerd-runner.ts");
const { workerd } = JSON.parse(readFileSync("test/mutants/stryker.worker.config.json", "utf8")) as {
  workerd: { testNamePattern: string };
};
const runner = new WorkerdRunner(
  { info: console.log, warn: console.warn },
  { ...workerd, minutes: Number(values.minutes), mostSurvivals: Number(values.mostSurvivals) },
);
await runner.init();
await runner.dryRun({ testFiles: testFiles.map((file) => resolve(file)) });

const outcomes: Record<string, Record<"detected" | "survived" | "untried", number>> = {};
for (const [id, { file, line, change }] of Object.entries(mutants)) {
  const outcome = runner.outcomeOf(id);
  (outcomes[file] ??= { detected: 0, survived: 0, untried: 0 })[outcome]++;
  if (outcome !== "detected") console.log(`${outcome}: ${file}:${line}: ${change}`);
}
console.table(outcomes);
mkdirSync(resolve(project, "dist"), { recursive: true });
writeFileSync(
  resolve(project, "dist/mutants-sql.json"),
  JSON.stringify(Object.entries(mutants).map(([id, one]) => ({ ...one, id, outcome: runner.outcomeOf(id) }))),
);
await runner.dispose();
process.exit();
