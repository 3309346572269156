import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { bundleCli, projectRoot } from "../../scripts/lib/bundle.ts";
import { local } from "./service.ts";

/** What people's shells, npm and man make of the program. */
const home = mkdtempSync(join(tmpdir(), "berth-shells-"));
const program = join(home, "berth.mjs");
const run = (name: string, args: string[], env: Record<string, string> = {}) =>
  execFileSync(name, args, {
    cwd: home,
    encoding: "utf8",
    env: { PATH: process.env["PATH"], HOME: home, TERM: "xterm", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
const script = (shell: string) => run(process.execPath, [program, "completion", shell]);
beforeAll(() => bundleCli(program));
afterAll(() => rmSync(home, { recursive: true, force: true }));

it("fish completes commands, those below them, and options, with their descriptions", () => {
  const folder = join(home, ".config", "fish", "completions");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "berth.fish"), script("fish"));
  // It loads completions of programs only that it finds.
  mkdirSync(join(home, "path"));
  symlinkSync(program, join(home, "path", "berth"));
  const PATH = `${join(home, "path")}:${process.env["PATH"]}`;
  const complete = (line: string) => run("fish", ["--command", `complete --do-complete '${line}'`], { PATH });
  expect(complete("berth dep")).toMatch(/^deploy\t.+\ndeployments\t.+\n$/);
  expect(complete("berth db cre")).toMatch(/^create\t.+\ncredentials\t/);
  expect(complete("berth logs --fol")).toMatch(/^--follow\t/);
});

it("zsh loads its script as a function of fpath, and completes", () => {
  const folder = join(home, "zsh");
  mkdirSync(folder);
  writeFileSync(join(folder, "_berth"), script("zsh"));
  // A pseudo-terminal, as completion works in an interactive shell only.
  writeFileSync(
    join(home, "type.zsh"),
    `zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell 'PS1="ready> "; fpath=(${folder} $fpath); autoload -Uz compinit; compinit -u -D; echo loa""ded'
zpty -r shell out '*loaded*ready> *'
zpty -w -n shell "$1"$'\\t\\t'
for i in {1..500}; do
  zpty -r -t shell more && all+=$more
  [[ $all == *$2* ]] && break
  sleep 0.02
done
print -r -- $all
`,
  );
  const typed = (line: string, wanted: string) => run("zsh", ["-f", "type.zsh", line, wanted]);
  expect(typed("berth deploym", "deployments")).toContain("deployments");
  expect(typed("berth deployments canc", "cancel")).toContain("cancel");
});

it("bash loads its script, and completes", () => {
  writeFileSync(join(home, "berth.bash"), script("bash"));
  const text = run("bash", [
    "-c",
    `. ./berth.bash; COMP_WORDS=(berth deployments canc); COMP_CWORD=2; _berth; echo "\${COMPREPLY[*]}"`,
  ]);
  expect(text).toBe("cancel\n");
});

it("man reads its page, without a warning", () => {
  const page = join(projectRoot, "cli", "berth.1");
  const text = run("man", ["--warnings", "--local-file", page], { MANWIDTH: "100", LC_ALL: "C.UTF-8" });
  expect(text).toContain("EXIT STATUS");
  expect(text).toContain("berth deploy");
});

it("the package that npm packs runs by npx, and has the man page", () => {
  const [{ filename, files }] = JSON.parse(
    run("npm", ["pack", join(projectRoot, "cli"), "--json", "--loglevel=error"]),
  ) as [{ filename: string; files: { path: string }[] }];
  expect(files.map(({ path }) => path).toSorted()).toEqual(["berth.1", "dist/berth.mjs", "package.json"]);
  const packed = join(home, filename);
  expect(run("npx", ["--yes", "--offline", `--package=${packed}`, "--", "berth", "--version"])).toMatch(
    /^\d+\.\d+\.\d+\n$/,
  );
});

it("the installer puts one file in place without root, which doctor finds well", () => {
  const folder = join(home, "bin");
  const installer = run("curl", ["-fsSL", `${local.siteUrl}/install/cli`]);
  writeFileSync(join(home, "install.sh"), installer);
  const said = run("sh", ["install.sh"], { BERTH_INSTALL_DIR: folder });
  expect(said).toContain(`Sign in with: berth login ${local.siteUrl}`);
  const checks = run(join(folder, "berth"), ["doctor"], {
    BERTH_URL: local.siteUrl,
    BERTH_TOKEN: local.apiKey,
  });
  expect(checks).not.toContain("✗");
  expect(
    JSON.parse(run(join(folder, "berth"), ["upgrade", "--json"], { BERTH_URL: local.siteUrl })),
  ).toMatchObject({
    from: expect.any(String),
  });
});
