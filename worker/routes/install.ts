import { Hono } from "hono";
import * as z from "zod";
import { ProjectFile } from "../../protocol/api/project-file.ts";
import { cliProgram, cliTemplate, hostPrograms, installFile, installTemplate } from "../adapters/assets.ts";
import type { AppEnv } from "../app-env.ts";
import { AppError } from "../domain/app-error.ts";
import { cliInstallScript, installScript } from "../domain/install-script.ts";
import { configOf } from "../config.ts";

/**
 * The scripts that set up a machine as a host, and install the command line program, and the files of both. Cloudflare serves the bundles itself,
 * without the Worker.
 */
export const install = new Hono<AppEnv>()
  .get("/", async (c) => {
    const { ASSETS } = c.env;
    const [template, programs] = await Promise.all([installTemplate(ASSETS), hostPrograms(ASSETS)]);
    if (template === null || programs === null) throw new AppError("not_found");
    return c.body(installScript(template, configOf(c.env).SITE_URL, programs), 200, {
      "Content-Type": "text/x-shellscript; charset=utf-8",
      "Cache-Control": "no-store",
    });
  })
  .get("/cli", async (c) => {
    const { ASSETS } = c.env;
    const [template, program] = await Promise.all([cliTemplate(ASSETS), cliProgram(ASSETS)]);
    if (template === null || program === null) throw new AppError("not_found");
    return c.body(cliInstallScript(template, configOf(c.env).SITE_URL, program), 200, {
      "Content-Type": "text/x-shellscript; charset=utf-8",
      "Cache-Control": "no-store",
    });
  })
  // For editors: berth.json names it.
  .get("/berth.schema.json", (c) => c.json(projectSchema()))
  .get("/:name{(?:agent|responder|berth)\\.mjs|berth\\.1|cli\\.json}", async (c) => {
    const name = c.req.param("name");
    const file = await installFile(c.env.ASSETS, name);
    if (file === null) throw new AppError("not_found");
    return new Response(file.body, {
      headers: {
        "Content-Type": name.endsWith(".json")
          ? "application/json"
          : name.endsWith(".1")
            ? "text/troff"
            : "text/javascript",
        "Cache-Control": "no-store",
      },
    });
  });

let schema: object | undefined;
const projectSchema = (): object => (schema ??= z.toJSONSchema(ProjectFile, { io: "input" }));
