import { maxVariables } from "../../../protocol/inspection-limits.ts";

/** Where repositories name the variables that an app needs. */
export const exampleFile =
  /^(?:\.env\.(?:example|sample|template|dist|defaults)|\.env\.local\.example|\.env\.example\.local|env\.(?:example|sample)|example\.env|sample\.env)$/;

/** The names that such a file gives values to, each once, in their order. */
export function namesIn(texts: readonly string[]): string[] {
  const found = texts.flatMap((text) =>
    [...text.matchAll(/^[ \t]*(?:#[ \t]*)?(?:export[ \t]+)?([A-Z][A-Z0-9_]{1,99})[ \t]*=/gm)].map(
      ([, name = ""]) => name,
    ),
  );
  return [...new Set(found)].slice(0, maxVariables);
}
