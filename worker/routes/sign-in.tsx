import { Hono, type Context } from "hono";
import * as z from "zod";
import { text } from "../../protocol/api/common.ts";
import { signsInWithGitHub } from "../adapters/auth.ts";
import { canMail } from "../adapters/mail.ts";
import type { AppEnv } from "../app-env.ts";
import { ownPath } from "../domain/own-path.ts";
import { configOf } from "../config.ts";
import { formToAuth, TwoFactorAsked } from "../middleware/auth.ts";
import { codeIn, isAppCode } from "../services/accounts/second-factor.ts";
import { formFields, limitBody } from "../middleware/body.ts";
import { limitAddress } from "../middleware/limit.ts";
import { offersSignUp } from "../middleware/page.ts";
import { requireSameOrigin } from "../middleware/session.ts";
import {
  ForgotPasswordPage,
  MessagePage,
  ResetPasswordPage,
  SecondStepPage,
  SignedUpPage,
  SignInPage,
  SignUpPage,
  type Entry,
} from "../pages/sign-in.tsx";
import { show } from "./show.ts";

/** A value that is missing, invalid or too long is empty, and changes no other. */
const Form = z.object({
  name: text.trim().max(100).catch(""),
  email: z.string().trim().max(254).catch(""),
  password: z.string().max(1000).catch(""),
  token: z.string().max(200).catch(""),
  code: z.string().max(100).catch(""),
  next: z.string().max(16_000).catch(""),
  revokeKeys: z.literal("yes").optional().catch("yes"),
});

/** The fields of a submitted form. */
async function formOf(c: Context<AppEnv>) {
  requireSameOrigin(c);
  const { next, ...fields } = Form.parse(await formFields(c.req));
  return { ...fields, next: ownPath(next) };
}

const entry = (c: Context<AppEnv>, shown: Partial<Omit<Entry, "offers">> = {}): Entry => ({
  name: "",
  email: "",
  refusal: null,
  notice: null,
  next: ownPath(c.req.query("next") ?? ""),
  ...shown,
  offers: {
    signUp: offersSignUp(c),
    gitHub: signsInWithGitHub(configOf(c.env)),
    reset: canMail(configOf(c.env)),
  },
});

/** Continues with the session cookie that better-auth set or cleared. */
const redirectWith = (c: Context<AppEnv>, from: Response, to: string) => {
  for (const cookie of from.headers.getSetCookie()) c.header("Set-Cookie", cookie, { append: true });
  return c.redirect(to, 303);
};

const Refusal = z.looseObject({ code: z.string().optional(), message: z.string().optional() });

async function refusalOf(response: Response): Promise<string> {
  const refusal = Refusal.safeParse(await response.json().catch(() => ({})));
  const code = refusal.data?.code ?? "";
  if (code.startsWith("USER_ALREADY_EXISTS"))
    return "An account with this email address already exists. Sign in, or reset its password.";
  if (code === "FAILED_TO_CREATE_USER")
    return "Nobody can sign up here at the moment. Ask the operator of this service for an account.";
  if (code === "INVALID_TOKEN") return "This link has been used or has expired. Request a new one.";
  return refusal.data?.message ?? "That did not work. Check your input and try again.";
}

const startAgain = "This sign-in has ended. Start again with your password.";
const codeRefusals: Record<string, string> = {
  INVALID_TWO_FACTOR_COOKIE: startAgain,
  TOO_MANY_ATTEMPTS_REQUEST_NEW_CODE: startAgain,
  ACCOUNT_TEMPORARILY_LOCKED: "Too many codes were wrong. Try again in fifteen minutes.",
};

/** Pages for people without a session: forms without scripts, each sending one request to better-auth. */
export const signInPages = new Hono<AppEnv>()
  .get("/sign-in", limitAddress, (c) => {
    const refusal = c.req.query("error") === undefined ? null : "Sign-in failed. Try again.";
    const notice = c.req.query("saved") === undefined ? null : "Your new password is saved. Sign in with it.";
    return show(c, <SignInPage {...entry(c, { refusal, notice })} />);
  })
  .get("/confirmed", limitAddress, (c) =>
    show(c, <SignInPage {...entry(c, { notice: "Your email address is confirmed. Sign in." })} />),
  )
  .post("/sign-in", limitAddress, limitBody, async (c) => {
    const { email, password, next } = await formOf(c);
    const answer = await formToAuth(c, "/sign-in/email", { email, password });
    if (answer.ok && TwoFactorAsked.safeParse(await answer.clone().json()).success)
      return redirectWith(
        c,
        answer,
        `/sign-in/second-step${next === "/" ? "" : `?next=${encodeURIComponent(next)}`}`,
      );
    if (answer.ok) return redirectWith(c, answer, next);
    const refusal = canMail(configOf(c.env))
      ? "The email address or the password is wrong, or the address is not confirmed yet. Check your inbox for our email."
      : "The email address or the password is wrong.";
    return show(c, <SignInPage {...entry(c, { email, refusal, next })} />, 401);
  })
  .get("/sign-in/second-step", limitAddress, (c) =>
    show(c, <SecondStepPage next={ownPath(c.req.query("next") ?? "")} refusal={null} />),
  )
  .post("/sign-in/second-step", limitAddress, limitBody, async (c) => {
    const { code: typed, next } = await formOf(c);
    const code = codeIn(typed);
    const path = isAppCode(code) ? "/two-factor/verify-totp" : "/two-factor/verify-backup-code";
    const answer = await formToAuth(c, path, { code });
    if (answer.ok) return redirectWith(c, answer, next);
    const { data } = Refusal.safeParse(await answer.clone().json());
    const refusal =
      codeRefusals[data?.code ?? ""] ?? "The code is wrong or was used before. Wait for the next one.";
    return show(c, <SecondStepPage next={next} refusal={refusal} />, 401);
  })
  .post("/sign-in/github", limitAddress, limitBody, async (c) => {
    const { next } = await formOf(c);
    const answer = await formToAuth(c, "/sign-in/social", {
      provider: "github",
      callbackURL: next,
      errorCallbackURL: "/sign-in",
      disableRedirect: true,
    });
    if (!answer.ok) return show(c, <SignInPage {...entry(c, { refusal: await refusalOf(answer) })} />, 404);
    return redirectWith(c, answer, z.object({ url: z.url() }).parse(await answer.clone().json()).url);
  })
  .get("/sign-up", limitAddress, (c) =>
    offersSignUp(c)
      ? show(c, <SignUpPage {...entry(c)} />)
      : show(
          c,
          <MessagePage title="No sign-up">Ask the operator of this service for an account.</MessagePage>,
          403,
        ),
  )
  .post("/sign-up", limitAddress, limitBody, async (c) => {
    const { name, email, password, next } = await formOf(c);
    const refusal = "Give a name of at most 100 characters.";
    if (name === "") return show(c, <SignUpPage {...entry(c, { email, next, refusal })} />, 400);
    const answer = await formToAuth(c, "/sign-up/email", { name, email, password, callbackURL: "/" });
    if (answer.ok && canMail(configOf(c.env))) return show(c, <SignedUpPage email={email} next={next} />);
    if (answer.ok) return redirectWith(c, answer, next);
    return show(
      c,
      <SignUpPage {...entry(c, { name, email, next, refusal: await refusalOf(answer) })} />,
      400,
    );
  })
  .get("/forgot-password", limitAddress, (c) => {
    if (canMail(configOf(c.env))) return show(c, <ForgotPasswordPage sent={false} />);
    const text = "This service does not send email. Ask its operator to reset your password.";
    return show(c, <MessagePage title="Forgot the password?">{text}</MessagePage>, 404);
  })
  .post("/forgot-password", limitAddress, limitBody, async (c) => {
    const { email } = await formOf(c);
    await formToAuth(c, "/request-password-reset", { email });
    return show(c, <ForgotPasswordPage sent={true} />);
  })
  .get("/reset-password", limitAddress, (c) => {
    return show(c, <ResetPasswordPage token={c.req.query("token") ?? ""} refusal={null} />);
  })
  .post("/reset-password", limitAddress, limitBody, async (c) => {
    const { token, password, revokeKeys } = await formOf(c);
    const path = revokeKeys === "yes" ? "/reset-password" : "/reset-password?keepKeys=1";
    const answer = await formToAuth(c, path, { token, newPassword: password });
    if (answer.ok) return c.redirect("/sign-in?saved=1", 303);
    return show(c, <ResetPasswordPage token={token} refusal={await refusalOf(answer)} />, 400);
  })
  .post("/sign-out", limitAddress, async (c) => {
    requireSameOrigin(c);
    return redirectWith(c, await formToAuth(c, "/sign-out", {}), "/sign-in");
  });
