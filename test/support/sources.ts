import type { Sources } from "../../agent/image-build/detect/sources.ts";

/** A repository of these files, as detection sees it. */
export const sourcesOf = (texts: Record<string, string>): Sources => {
  const paths = Object.keys(texts);
  const folders = paths.flatMap((path) =>
    path
      .split("/")
      .slice(0, -1)
      .map((_, depth, parts) => `${parts.slice(0, depth + 1).join("/")}/`),
  );
  return { files: new Set([...paths, ...folders]), texts: new Map(Object.entries(texts)) };
};
