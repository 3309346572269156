import {
  bodyLimitsMb,
  type Ingress,
  type IngressChange,
  type Redirect,
} from "../../../protocol/api/ingress.ts";
import { SiteSettings, type Site } from "../../../protocol/api/sites.ts";
import { invalid } from "../../domain/app-error.ts";
import { parsed } from "../../domain/parsed.ts";
import { Check, Field, Form, Select, Submit, TextArea } from "../kit/form.tsx";
import type { Fields } from "../kit/screen.ts";

const lineOf = ({
  from,
  match,
  to,
  code,
}: Partial<Pick<Redirect, "code">> & Omit<Redirect, "code">): string =>
  [match === "prefix" ? `${from.replace(/\/$/, "")}/*` : from, to, code]
    .filter((part) => part !== undefined)
    .join(" ");

const linesOf = (written: string): string[] =>
  written
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);

/** `/old /new 301` a line; a `*` at the end of the first: also what is below it. @throws AppError invalid_request */
function waysOf(fields: Fields, name: "redirects" | "rewrites"): unknown {
  const ways = linesOf(fields.text(name)).map((line, index) => {
    const [from = "", to = "", code, ...rest] = line.split(/\s+/);
    if (to === "" || rest.length > 0)
      throw invalid(name, `Line ${index + 1}: write a path, a space, and where it leads`);
    return {
      from: from.replace(/\/?\*$/, "") || "/",
      ...(from.endsWith("*") && { match: "prefix" }),
      to,
      ...(code !== undefined && { code: Number(code) }),
    };
  });
  return ways.length === 0 ? null : ways;
}

/** @throws AppError invalid_request */
function headersOf(fields: Fields): unknown {
  const headers = linesOf(fields.text("headers")).map((line, index) => {
    const at = line.indexOf(":");
    if (at < 1) throw invalid("headers", `Line ${index + 1}: write a name, a colon and a value`);
    return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
  });
  return headers.length === 0 ? null : Object.fromEntries(headers);
}

const yearSeconds = 31_536_000;

/** What the site's ingress does: it applies at once, without a deployment. */
export const IngressForm = ({ site: { ingress, replicas, url } }: { site: Site }) => (
  <Form id="ingress">
    <Check
      name="maintenance"
      label="Maintenance: visitors see a page with this text, and the site keeps running"
      checked={ingress.maintenance !== null}
    />
    <TextArea
      name="message"
      prose
      label="Text of the maintenance page"
      value={ingress.maintenance?.message}
      rows={2}
      maxlength={2000}
      wide
    />
    <TextArea
      name="redirects"
      label="Redirects"
      hint="One per line: /old /new, or /old/* https://example.com/new 301. The first that matches applies; the code defaults to 308."
      value={(ingress.redirects ?? []).map(lineOf).join("\n")}
      rows={3}
      placeholder="/old /new"
      wide
    />
    <TextArea
      name="rewrites"
      label="Rewrites"
      hint="One per line: /api/* /v1. The app receives another path, and visitors see no difference."
      value={(ingress.rewrites ?? []).map(lineOf).join("\n")}
      rows={2}
      placeholder="/api/* /v1"
      wide
    />
    <TextArea
      name="headers"
      label="Headers of every response"
      hint="One per line, such as X-Frame-Options: DENY."
      value={Object.entries(ingress.headers ?? {})
        .map(([name, value]) => `${name}: ${value}`)
        .join("\n")}
      rows={2}
      wide
    />
    <div class="columns">
      <Field
        name="username"
        label="Password protection: user name"
        hint="Leave empty to let everybody see the site."
        value={ingress.basicAuth?.username}
        maxlength={100}
      />
      <Field
        name="password"
        type="password"
        label="Password"
        {...(ingress.basicAuth !== null && { hint: "Leave empty to keep it." })}
        maxlength={200}
        autocomplete="new-password"
      />
    </div>
    <TextArea
      name="allow"
      label="Only these addresses may visit"
      hint="One address or network per line, such as 203.0.113.0/24. Leave empty to allow everybody."
      value={(ingress.allow ?? []).join("\n")}
      rows={2}
      wide
    />
    <div class="columns">
      <Select
        name="maxBodyMb"
        label="Largest upload"
        value={String(ingress.maxBodyMb ?? "")}
        options={[["", "no limit"], ...bodyLimitsMb.map((mb) => [String(mb), `${mb} MB`] as const)]}
      />
      {url.startsWith("https:") && (
        <Select
          name="hsts"
          label="Browsers insist on https (HSTS)"
          value={String(ingress.hsts?.maxAgeSeconds ?? "")}
          options={[
            ["", "no"],
            ...[
              ...new Set([86_400, yearSeconds, 2 * yearSeconds, ingress.hsts?.maxAgeSeconds ?? 86_400]),
            ].map(
              (seconds) =>
                [
                  String(seconds),
                  seconds === 86_400
                    ? "for a day"
                    : seconds === yearSeconds
                      ? "for a year"
                      : seconds === 2 * yearSeconds
                        ? "for two years"
                        : `for ${seconds} seconds`,
                ] as const,
            ),
          ]}
        />
      )}
    </div>
    {url.startsWith("https:") && (
      <Check
        name="httpsOnly"
        label="Redirect visitors from http to https"
        checked={ingress.httpsOnly === true}
      />
    )}
    {(replicas > 1 || ingress.stickySessions === true) && (
      <Check
        name="stickySessions"
        label="Keep each visitor at one replica"
        checked={ingress.stickySessions === true}
      />
    )}
    <Submit label="Save and apply now" />
  </Form>
);

/** What the form does not show, such as the primary domain, stays as it is. @throws AppError invalid_request */
export function readIngress(fields: Fields, now: Ingress): SiteSettings {
  const [username, password] = [fields.text("username").trim(), fields.text("password")];
  if (username !== "" && password === "" && now.basicAuth?.username !== username)
    throw invalid("password", "Type the password that visitors are asked for");
  const hsts = fields.text("hsts");
  const ingress = {
    maintenance:
      fields.text("maintenance") === "true"
        ? { ...(fields.text("message").trim() !== "" && { message: fields.text("message").trim() }) }
        : null,
    redirects: waysOf(fields, "redirects"),
    rewrites: waysOf(fields, "rewrites"),
    headers: headersOf(fields),
    allow: linesOf(fields.text("allow")).length === 0 ? null : linesOf(fields.text("allow")),
    maxBodyMb: fields.text("maxBodyMb") === "" ? null : Number(fields.text("maxBodyMb")),
    hsts: hsts === "" ? null : { ...now.hsts, maxAgeSeconds: Number(hsts) },
    httpsOnly: fields.text("httpsOnly") === "true" ? true : null,
    stickySessions: fields.text("stickySessions") === "true" ? true : null,
    ...(username === "" && { basicAuth: null }),
    ...(username !== "" && password !== "" && { basicAuth: { username, password } }),
  } satisfies { [Name in keyof IngressChange]: unknown };
  return parsed(SiteSettings, { ingress });
}
