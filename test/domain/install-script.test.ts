import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { installCommand, installScript } from "../../worker/domain/install-script.ts";

const root = join(import.meta.dirname, "../..");

const template = readFileSync(join(root, "scripts/install.sh"), "utf8");
const programs = { agentVersion: "1.2.3", agentSha256: "a".repeat(64), responderSha256: "b".repeat(64) };

it("the script names this installation and the hashes of what it installs, and nothing is left open", () => {
  const script = installScript(template, "https://berth.example", programs);
  expect(script).toContain("SITE_URL='https://berth.example'");
  expect(script).toContain(`AGENT_SHA256='${"a".repeat(64)}'`);
  expect(script).toContain(`RESPONDER_SHA256='${"b".repeat(64)}'`);
  expect(script).not.toMatch(/@[A-Z0-9_]+@/);
});

it("does nothing before its last line, so that a download that was cut does nothing", () => {
  const [last] = template.trim().split("\n").slice(-1);
  expect(last).toBe('if [ "$uninstall" = yes ]; then uninstall_host; else install_host; fi');
  const unindented = template
    .split("\n")
    .filter((line) => /^[a-z]/.test(line) && !/^(set -eu|[a-z_]+\(\)|[a-z_]+=|for|done|if)/.test(line));
  expect(unindented).toEqual([]);
});

it("the command hands the token over in the environment", () => {
  expect(installCommand("https://berth.example", "hst_0abc")).toBe(
    "curl -fsSL https://berth.example/install | BERTH_TOKEN=hst_0abc sh",
  );
});

it("a host that has no Node of its own runs the one that everything was tested with", () => {
  const { devDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    devDependencies: Record<string, string>;
  };
  expect(template).toContain(`\nNODE_VERSION=${devDependencies["node"]}\n`);
});
