import { Hono, type Context } from "hono";
import type { AppEnv } from "../app-env.ts";
import { confirmByLink } from "../middleware/auth.ts";
import { formFields, limitBody } from "../middleware/body.ts";
import { contextFor } from "../middleware/context.ts";
import { limitAddress } from "../middleware/limit.ts";
import { say } from "../middleware/page.ts";
import { requireSameOrigin } from "../middleware/session.ts";
import { toSignIn } from "../middleware/signed-in.ts";
import {
  ConfirmAddressPage,
  EndedLinkPage,
  OtherAccountPage,
  TakenAddressPage,
} from "../pages/confirm-address.tsx";
import {
  hasAccount,
  readAddressLink,
  takeAddressLink,
  type AddressLink,
} from "../services/accounts/address-links.ts";
import { show } from "./show.ts";
import { noteViewer } from "./viewer.ts";

const ended = (c: Context<AppEnv>) => show(c, <EndedLinkPage />, 400);

/** The link, if it may be used here, or what is answered instead. */
async function linkFor(c: Context<AppEnv>, token: string): Promise<AddressLink | Response> {
  const link = await readAddressLink(contextFor(c, { type: "link" }), token);
  if (!link) return ended(c);
  if (link.step === "confirm") return link;
  const viewer = c.get("viewer");
  if (!viewer) return toSignIn(c);
  return viewer.id === link.accountId ? link : show(c, <OtherAccountPage />, 403);
}

const done = ({ step, email }: AddressLink): string =>
  ({
    confirm: "Your email address is confirmed.",
    agree: `We sent a link to ${email}. The address changes when it is opened.`,
    change: `The address of your account is ${email} now.`,
  })[step];

/**
 * Where mailed links lead that confirm an address. Programs open them too, so only the form acts. A change takes the account's own
 * session, and no link begins one.
 */
export const confirmAddressPage = new Hono<AppEnv>()
  .use(limitAddress, noteViewer)
  .get("/", async (c) => {
    const token = c.req.query("token") ?? "";
    const link = await linkFor(c, token);
    return link instanceof Response ? link : show(c, <ConfirmAddressPage token={token} {...link} />);
  })
  .post("/", limitBody, async (c) => {
    requireSameOrigin(c);
    const { token } = await formFields(c.req);
    if (typeof token !== "string") return ended(c);
    const link = await linkFor(c, token);
    if (link instanceof Response) return link;
    const ctx = contextFor(c, { type: "link" });
    if (!(await takeAddressLink(ctx, token))) return ended(c);
    try {
      if (!(await confirmByLink(c, token))) return ended(c);
    } catch (error) {
      // No two accounts have one address.
      if (link.step !== "change" || !(await hasAccount(ctx, link.email))) throw error;
      return show(c, <TakenAddressPage email={link.email} />, 409);
    }
    if (!c.get("viewer")) return c.redirect("/confirmed", 303);
    say(c, { tone: "good", text: done(link) });
    return c.redirect(link.step === "confirm" ? "/" : "/account", 303);
  });
