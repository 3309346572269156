import module from "node:module";

/** Keeps the compiled code between runs, where Node can (22.8 and later). */
export const enableCompileCache = (): void => {
  const { enableCompileCache: enable } = module as { enableCompileCache?: () => unknown };
  enable?.();
};
