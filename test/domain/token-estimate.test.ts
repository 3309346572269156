import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { encode as encodeCl100k } from "gpt-tokenizer/encoding/cl100k_base";
import { encode as encodeO200k } from "gpt-tokenizer/encoding/o200k_base";
import { describe, expect, it } from "vitest";
import { cutTo, tokenEstimate } from "../../worker/assistant/token-estimate.ts";

const root = join(import.meta.dirname, "../..");

const bytes = (count: number): Buffer => {
  const parts: Buffer[] = [];
  for (let at = 0; at * 32 < count; at++) parts.push(createHash("sha256").update(`seed${at}`).digest());
  return Buffer.concat(parts).subarray(0, count);
};
const from = (alphabet: string[], count: number) =>
  [...bytes(count * 2)].flatMap((byte, at, all) =>
    at % 2 === 0 ? [alphabet[(byte * 256 + (all[at + 1] ?? 0)) % alphabet.length] ?? ""] : [],
  );
const range = (first: number, count: number) =>
  Array.from({ length: count }, (_, at) => String.fromCodePoint(first + at));
const file = (path: string) => readFileSync(join(root, path), "utf8").slice(0, 40_000);
const log = Array.from(
  { length: 100 },
  (_, at) =>
    `2026-11-23T10:${at % 60}:12.${(at * 7919) % 1000}Z stderr npm ERR! code E${at} at /app/x${at}.js:${at}`,
).join("\n");

const samples: [name: string, text: string][] = [
  ["English", file("docs/design.md")],
  ["TypeScript", file("worker/assistant/converse.ts")],
  ["JSON", file("package-lock.json")],
  ["JSON in JSON", JSON.stringify(JSON.stringify(file("package.json")))],
  ["a log", log],
  ["hexadecimal", bytes(3000).toString("hex")],
  ["base64", bytes(3000).toString("base64")],
  ["random letters", from(range(97, 26), 4000).join("")],
  ["random words", from([...range(97, 26), " ", " ", " ", " "], 4000).join("")],
  ["random capitals", from([...range(65, 26), " "], 4000).join("")],
  ["signs", from(Array.from('!@#$%^&*()_+{}|:<>?~`-=[];,./"'), 3000).join("")],
  ["German", "Die Bereitstellung schlug fehl, weil der Gesundheitscheck keine Antwort erhielt. ".repeat(20)],
  ["Chinese", "部署失败，因为健康检查没有收到响应。请检查环境变量和端口设置，然后重新部署。".repeat(20)],
  ["Japanese", "デプロイに失敗しました。ヘルスチェックが応答しませんでした。".repeat(20)],
  ["Arabic", "فشل النشر لأن فحص السلامة لم يتلق أي رد. ".repeat(20)],
  ["Russian", "Развертывание не удалось, потому что проверка не получила ответа. ".repeat(20)],
  ["Hindi", "परिनियोजन विफल रहा क्योंकि कोई प्रतिक्रिया नहीं मिली। ".repeat(20)],
  ["pictures", "🔥🚀👩‍👩‍👧‍👦🏳️‍🌈😀".repeat(60)],
  ["rare characters", from(range(0x10000, 60_000), 1000).join("")],
  ["rare letters", String.fromCodePoint(0x1e900).repeat(2000)],
  ["spaces and lines", `${" ".repeat(500)}\n\n\n${"\t".repeat(90)}a`.repeat(9)],
];

describe("the estimate of tokens", () => {
  it.each(samples)("is on the safe side for %s", (_, text) => {
    expect(tokenEstimate(text)).toBeGreaterThanOrEqual(encodeO200k(text).length);
    expect(tokenEstimate(text)).toBeGreaterThanOrEqual(encodeCl100k(text).length);
  });

  it("is not far off for English and for tools' results", () => {
    for (const text of [samples[0]?.[1] ?? "", log])
      expect(tokenEstimate(text)).toBeLessThan(encodeO200k(text).length * 1.8);
  });
});

describe("a text that is cut", () => {
  it.each(samples)("keeps its beginning and its end, within so many tokens: %s", (_, text) => {
    const cut = cutTo(text, 200);
    expect(tokenEstimate(cut)).toBeLessThanOrEqual(200);
    expect(cut.startsWith(text.slice(0, 10))).toBe(true);
    expect(cut.endsWith(text.slice(-5))).toBe(true);
    expect(cut).toContain(" […] ");
  });

  it("is untouched where it fits", () => {
    expect(cutTo("short", 200)).toBe("short");
    expect(cutTo("", 0)).toBe("");
  });
});
