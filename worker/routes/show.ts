import type { Context } from "hono";
import { html } from "hono/html";
import type { HtmlEscapedString } from "hono/utils/html";
import type { AppEnv } from "../app-env.ts";

type Page = HtmlEscapedString | Promise<HtmlEscapedString>;

/** Answers with a page. */
export const show = (c: Context<AppEnv>, page: Page, status: 200 | 400 | 401 | 403 | 404 | 409 = 200) =>
  c.html(html`<!doctype html>${page}`, status);
