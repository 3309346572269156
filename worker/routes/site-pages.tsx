import { Hono, type Context } from "hono";
import { html } from "hono/html";
import * as z from "zod";
import { SiteCreate } from "../../protocol/api/sites.ts";
import { SourceInspect } from "../../protocol/api/sources.ts";
import { call } from "../api/call.ts";
import type { AppEnv } from "../app-env.ts";
import { accountOf, type Ctx } from "../ctx.ts";
import { AppError } from "../domain/app-error.ts";
import { parsed } from "../domain/parsed.ts";
import { limitBody } from "../middleware/body.ts";
import { takeFrom } from "../middleware/limit.ts";
import { signedIn } from "../middleware/signed-in.ts";
import { NewSitePage, type Checked } from "../pages/new-site.tsx";

type Page = Parameters<typeof html>[1];
const whole = async (page: Page): Promise<string> => String(await html`<!doctype html>${page}`);

const PastedAddress = z.string().transform((text) =>
  text
    .trim()
    .replace(/^https?:\/\//, "")
    .replace(/\/$/, ""),
);

/** A form to check a repository: the rest of it is only shown again. */
const FormText = z.record(z.string(), z.string());
const Checking = z
  .object({
    githubUrl: PastedAddress,
    branch: z.string().optional(),
    rootDir: z.string().optional(),
    gitToken: z.string().optional(),
  })
  .pipe(SourceInspect);

async function newSite(ctx: Ctx, checked: Checked | null = null): Promise<string> {
  const { data } = await call(ctx, "listPacks", { limit: 100 });
  return whole(<NewSitePage packs={data.filter(({ kind }) => kind === "site")} checked={checked} />);
}

/** What a host says of the repository, or why it was not asked. */
async function check(
  c: Context<AppEnv>,
  form: Record<string, string>,
): Promise<Pick<Checked, "found" | "problem">> {
  const given = Object.fromEntries(Object.entries(form).filter(([, value]) => value !== ""));
  try {
    const source = parsed(Checking, given);
    await takeFrom(c, "sourceInspected", accountOf(c.var.ctx));
    const found = await call(c.var.ctx, "inspectSource", source);
    return { found, problem: found.problem };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { found: null, problem: whyNotChecked(error) };
  }
}

function whyNotChecked({ code, message, extra }: AppError): string {
  if (code === "rate_limited")
    return "Too many repositories were checked within a minute. Try again in a minute.";
  if (code === "invalid_request")
    return "The address, branch, folder or token is not valid. Write the address as github.com/owner/repository.";
  return typeof extra["reason"] === "string" ? extra["reason"] : message;
}

/** Accepts pasted repository URLs, and numbers as the text that forms submit. */
const NewSite = z
  .object({
    githubUrl: PastedAddress.optional(),
    port: z.coerce.number().optional(),
    billingTerm: z.coerce.number().optional(),
  })
  .loose()
  .pipe(SiteCreate);

async function read<Schema extends z.ZodType>(c: Context<AppEnv>, schema: Schema): Promise<z.infer<Schema>> {
  const body = await c.req.parseBody();
  return parsed(schema, Object.fromEntries(Object.entries(body).filter(([, value]) => value !== "")));
}

export const sitePages = new Hono<AppEnv>()
  .use(signedIn)
  .get("/new", async (c) => c.html(await newSite(c.var.ctx)))
  .post("/new", limitBody, async (c) => {
    const form = parsed(FormText, await c.req.parseBody());
    const checked = await check(c, form);
    const { gitToken: _gitToken, ...entered } = form;
    return c.html(await newSite(c.var.ctx, { ...checked, entered }), checked.found ? 200 : 400);
  })
  .post("/", limitBody, async (c) => {
    const { invoiceToken } = await call(c.var.ctx, "createSite", await read(c, NewSite));
    return c.redirect(`/invoice/${invoiceToken}`, 303);
  });
