import { Hono } from "hono";
import { webFile } from "../adapters/assets.ts";
import type { AppEnv } from "../app-env.ts";
import { AppError } from "../domain/app-error.ts";

const types: Record<string, string> = {
  css: "text/css; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  svg: "image/svg+xml",
  woff2: "font/woff2",
};

/** Styles, scripts and fonts of the pages. Their names change with their contents. Cloudflare serves them without the Worker. */
export const assets = new Hono<AppEnv>().get(
  "/:name{[a-z0-9-]+-[A-Z0-9]{8}\\.(?:css|js|svg|woff2)}",
  async (c) => {
    const name = c.req.param("name");
    const file = await webFile(c.env.ASSETS, name);
    if (file === null) throw new AppError("not_found");
    return new Response(file.body, {
      headers: {
        "Content-Type": types[name.slice(name.lastIndexOf(".") + 1)] ?? "application/octet-stream",
        "Cache-Control": "public, max-age=31536000, immutable",
      },
    });
  },
);
