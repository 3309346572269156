import { AsyncLocalStorage } from "node:async_hooks";
import type { BetterAuthOptions, DBAdapter } from "better-auth";
import { eq } from "drizzle-orm";
import { ProfilePatch } from "../../protocol/api/self-service.ts";
import type { Id } from "../../protocol/ids.ts";
import { batch, type Statements } from "../db/batch.ts";
import { accounts, identities, sessions, twoFactors, verifications } from "../db/schema.ts";
import { sha256Hex } from "../domain/tokens.ts";
import { tokenKeys, type Config } from "../config.ts";
import type { Ctx } from "../ctx.ts";
import { logError } from "../log-error.ts";
import { hashPassword, isPassword } from "./password.ts";
import { canMail, sendMail } from "./mail.ts";
import { sealingTwoFactors } from "./two-factor-rows.ts";

/** What is written with an account's new password. */
export type WithPassword = (accountId: Id<"account">) => Statements;
const withPassword = new AsyncLocalStorage<WithPassword>();

/** better-auth's interface for the rest of the Worker: requests below {site_url}/api/auth. */
export type Auth = {
  /** @param written what is written in one batch with a password that the request sets */
  handler(request: Request, written?: WithPassword): Promise<Response>;
  /** Uses a token of `addressLinkMailed`. @param headers with the cookies of whoever does it */
  confirmAddress(token: string, headers: Headers): Promise<Response>;
};

export const sessionDays = 30;
const passwordLength = { min: 12, max: 200 } as const;

/** Plain http is used on the loopback address only, where browsers do not store Secure cookies. */
export const isSecure = (config: Config): boolean => config.SITE_URL.startsWith("https:");
/** What every cookie of ours has that no script reads. */
export const ownCookie = (config: Config) =>
  ({ path: "/", httpOnly: true, sameSite: "Lax", secure: isSecure(config) }) as const;
/** Browsers reject a `__Host-` cookie set by another host, such as a tenant's site below the same domain. */
export const cookiePrefix = (config: Config): string => `${isSecure(config) ? "__Host-" : ""}berth`;
export const sessionCookie = (config: Config): string => `${cookiePrefix(config)}_session`;

const signingKeys = new WeakMap<Uint8Array, Promise<CryptoKey>>();

/** better-auth signs with the text of its secret. */
const secretOf = (key: Uint8Array): string => Buffer.from(key).toString("base64url");

function signingKeyOf(key: Uint8Array): Promise<CryptoKey> {
  let imported = signingKeys.get(key);
  if (!imported) {
    const algorithm = { name: "HMAC", hash: "SHA-256" };
    imported = crypto.subtle.importKey("raw", Buffer.from(secretOf(key)), algorithm, false, ["verify"]);
    signingKeys.set(key, imported);
  }
  return imported;
}

/** The token of a session cookie (`token.signature`); null if none of our keys signed it. Needs no database access. */
export async function signedSessionToken(config: Config, cookie: string): Promise<string | null> {
  const dot = cookie.lastIndexOf(".");
  const token = cookie.slice(0, Math.max(0, dot));
  const signature = Buffer.from(cookie.slice(dot + 1), "base64");
  for (const key of tokenKeys(config, "sessions"))
    if (await crypto.subtle.verify("HMAC", await signingKeyOf(key), signature, Buffer.from(token)))
      return token;
  return null;
}

export const signsInWithGitHub = (config: Config): boolean =>
  config.GITHUB_CLIENT_ID !== undefined && config.GITHUB_CLIENT_SECRET !== undefined;

/** What an account's owner has done, for our own rules to follow. */
type AuthEvents = {
  /** The installation's name, for mails. */
  brandName(ctx: Ctx): Promise<string>;
  /** false: no account is created, by whatever way. */
  takesSignUps(ctx: Ctx): Promise<boolean>;
  passwordReset(ctx: Ctx, accountId: Id<"account">): Promise<void>;
  /** false: this address was mailed too often lately with this subject. */
  mayMail(to: string, subject: string): Promise<boolean>;
  /** Before it is mailed; better-auth's own token would be valid whatever has happened since. */
  addressLinkMailed(ctx: Ctx, accountId: Id<"account">, token: string): Promise<void>;
  addressConfirmed(ctx: Ctx, accountId: Id<"account">): Promise<void>;
  /** A statement for the batch that writes an account's new password. */
  passwordWritten(ctx: Ctx, accountId: Id<"account">): ReturnType<Ctx["statement"]>;
};

/** Loaded on first use: it is a third of the Worker, and no API request needs it. */
export async function createAuth(ctx: Ctx, events: AuthEvents): Promise<Auth> {
  const [{ betterAuth }, { createAuthMiddleware }, { drizzleAdapter }, { twoFactor }, crypto] =
    await Promise.all([
      import("better-auth/minimal"),
      import("./auth-hook.ts"),
      import("better-auth/adapters/drizzle"),
      import("better-auth/plugins/two-factor"),
      import("better-auth/crypto"),
    ]);
  const { config } = ctx;
  const secret = secretOf(tokenKeys(config, "sessions")[0]);
  const sealing = sealingTwoFactors(ctx, {
    encrypt: (data) => crypto.symmetricEncrypt({ key: secret, data }),
    decrypt: (data) => crypto.symmetricDecrypt({ key: secret, data }),
  });
  const withIt = (accountId: Id<"account">, written: WithPassword): Statements => ({
    sessions: ctx.db.delete(sessions).where(eq(sessions.accountId, accountId)),
    links: events.passwordWritten(ctx, accountId),
    ...written(accountId),
  });
  /**
   * better-auth writes a password alone, and what belongs to it later or never. Both are written at once here, and the sessions of
   * the one before end; better-auth's own write then changes nothing more.
   */
  const writingPasswords = <Adapter extends InTransaction>(adapter: Adapter): Adapter => {
    const write = async ({ model, where, update }: Parameters<InTransaction["updateMany"]>[0]) => {
      const written = withPassword.getStore();
      const password = passwordIn(model, update);
      if (!written || password === null) return;
      const row = await adapter.findOne<{ id: string; userId: Id<"account"> }>({ model, where });
      if (!row) return;
      const its = eq(identities.id, row.id);
      await batch(ctx, {
        password: ctx.db.update(identities).set({ password, updatedAt: ctx.now() }).where(its),
        ...withIt(row.userId, written),
      });
    };
    return {
      ...adapter,
      update: async (input) => {
        await write(input);
        return adapter.update(input);
      },
      updateMany: async (input) => {
        await write(input);
        return adapter.updateMany(input);
      },
      // Of whoever signed in without one, by a mailed link.
      create: async (input) => {
        const made = await adapter.create(input);
        const written = withPassword.getStore();
        const { userId } = input.data as { userId?: Id<"account"> };
        if (written && userId && passwordIn(input.model, input.data) !== null)
          await batch(ctx, withIt(userId, written));
        return made as never;
      },
    };
  };
  /** `{brand}` is the installation's name. */
  const mail = async (to: string, subject: string, ...lines: string[]) => {
    // Whoever caused it is not told: that would tell whether the address has an account.
    if (!(await events.mayMail(to, subject))) return;
    const brand = await events.brandName(ctx);
    await sendMail(config, {
      to,
      subject,
      text: `${lines.join("\n\n").replaceAll("{brand}", () => brand)}\n`,
    });
  };
  /** A page, whose form does what better-auth would do for whoever opens the link. */
  const addressLink = async (accountId: string, token: string) => {
    await events.addressLinkMailed(ctx, accountId as Id<"account">, token);
    return `${config.SITE_URL}/confirm-address?token=${token}`;
  };
  const options = {
    appName: "Berth",
    baseURL: config.SITE_URL,
    basePath: "/api/auth",
    secret,
    database: wrapped(
      drizzleAdapter(ctx.db, {
        provider: "sqlite",
        schema: {
          user: accounts,
          session: sessions,
          account: identities,
          verification: verifications,
          twoFactor: twoFactors,
        },
      }),
      (adapter) => sealing(hashingTokens(writingPasswords(adapter))),
    ),
    plugins: [secondStep(twoFactor)],
    // Codes by mail are not offered, and nobody needs the secret a second time. Other sessions are ended by our own API:
    // better-auth would look for them by tokens that only their hashes are kept of, and say that they had ended. A password is
    // typed where it is needed: asked for by itself it would only be guessed.
    disabledPaths: [
      "/two-factor/send-otp",
      "/two-factor/verify-otp",
      "/two-factor/get-totp-uri",
      "/revoke-other-sessions",
      "/verify-password",
      // Opening it acts, and signs in: see routes/confirm-address.tsx.
      "/verify-email",
      // A name is changed by our own API, which bounds it and records the change.
      "/update-user",
    ],
    user: {
      // Confirmed by the old address first, then by the new one.
      ...(canMail(config) && {
        changeEmail: {
          enabled: true,
          sendChangeEmailConfirmation: async ({ user, newEmail, token }) =>
            mail(
              user.email,
              "Change your email address?",
              `Someone, hopefully you, asked to change the address of your {brand} account to ${newEmail}. Open this link, signed in, to agree; a link to the new address follows, which must be opened too:`,
              await addressLink(user.id, token),
              "The link is valid for one hour. If this was not you, do not agree, and change your password: nothing has changed.",
            ),
        },
      }),
    },
    session: { fields: { userId: "accountId" }, expiresIn: sessionDays * 86_400, updateAge: 86_400 },
    account: { encryptOAuthTokens: true },
    verification: { storeIdentifier: "hashed" },
    databaseHooks: {
      user: {
        create: {
          // By whatever way, a password or GitHub.
          before: async () => {
            if (!(await events.takesSignUps(ctx))) return false;
          },
        },
      },
    },
    hooks: {
      // Whoever knew the old password may have any session of the account, even a copy of the one that changes it.
      before: createAuthMiddleware(async ({ path }) =>
        path === "/change-password" ? { context: { body: { revokeOtherSessions: true } } } : undefined,
      ),
    },
    emailAndPassword: {
      enabled: true,
      minPasswordLength: passwordLength.min,
      maxPasswordLength: passwordLength.max,
      revokeSessionsOnPasswordReset: true,
      onPasswordReset: ({ user }) => events.passwordReset(ctx, user.id as Id<"account">),
      password: {
        hash: (password) => hashPassword(password, ctx.random(16)),
        verify: ({ password, hash }) => isPassword(password, hash),
      },
      ...(canMail(config) && {
        requireEmailVerification: true,
        onExistingUserSignUp: ({ user }) =>
          mail(
            user.email,
            "You already have an account",
            "Someone, hopefully you, tried to create a {brand} account with this address, but there already is one. Sign in here:",
            `${config.SITE_URL}/sign-in`,
            "If you have forgotten the password, reset it here:",
            `${config.SITE_URL}/forgot-password`,
            "If this was not you, ignore this email: nothing has changed.",
          ),
        sendResetPassword: ({ user, token }) =>
          mail(
            user.email,
            "Reset your password",
            "Someone, hopefully you, asked to reset the password of your {brand} account. Choose a new password here:",
            `${config.SITE_URL}/reset-password?token=${token}`,
            "The link is valid for one hour. If this was not you, ignore this email: nothing has changed.",
          ),
      }),
    },
    ...(canMail(config) && {
      emailVerification: {
        sendOnSignUp: true,
        // Only sent after the correct password.
        sendOnSignIn: true,
        afterEmailVerification: ({ id }) => events.addressConfirmed(ctx, id as Id<"account">),
        sendVerificationEmail: async ({ user, token }) =>
          mail(
            user.email,
            "Confirm your email address",
            "Someone, hopefully you, wants to use this address for a {brand} account. Open this link to confirm the address:",
            await addressLink(user.id, token),
            "The link is valid for one hour. If this was not you, ignore this email: without confirmation, the address is not used.",
          ),
      },
    }),
    ...(signsInWithGitHub(config) && {
      socialProviders: {
        github: {
          clientId: config.GITHUB_CLIENT_ID ?? "",
          clientSecret: config.GITHUB_CLIENT_SECRET ?? "",
          mapProfileToUser: ({ name, login }) => ({
            name: ProfilePatch.safeParse({ name }).data?.name ?? login,
          }),
        },
      },
    }),
    onAPIError: { errorURL: `${config.SITE_URL}/sign-in` },
    // Our own limits are counted in Durable Objects, see middleware/limit.ts; these would be counted per isolate.
    rateLimit: { enabled: false },
    advanced: {
      cookiePrefix: cookiePrefix(config),
      cookies: { session_token: { name: sessionCookie(config) } },
      // better-auth's default prefix `__Secure-` could be set by any host of the domain. With `__Host-` it adds Secure itself.
      useSecureCookies: false,
      ipAddress: { ipAddressHeaders: ["cf-connecting-ip"] },
      database: { generateId: ({ model }) => ctx.newId(idKinds[model] ?? "verification") },
      backgroundTasks: { handler: (work) => ctx.defer(work) },
    },
    logger: {
      level: "error",
      log: (level, message, ...details: unknown[]) => {
        const error = details.find((one) => one instanceof Error);
        if (error) logError({ auth: message }, error);
        else console.error(JSON.stringify({ level, auth: message }));
      },
    },
  } satisfies BetterAuthOptions;
  const auth = betterAuth(options);
  return {
    handler: (request, written) =>
      written ? withPassword.run(written, () => auth.handler(request)) : auth.handler(request),
    confirmAddress: (token, headers) => auth.api.verifyEmail({ query: { token }, headers, asResponse: true }),
  };
}

/**
 * Signing in by password and by GitHub: whichever begins a session, the second step comes first. better-auth asks for it after a
 * password only.
 */
function secondStep(twoFactor: typeof import("better-auth/plugins/two-factor").twoFactor) {
  const plugin = twoFactor({
    issuer: "Berth",
    // Sealed by us, see two-factor-rows.ts.
    backupCodeOptions: { storeBackupCodes: "plain" },
    schema: { twoFactor: { fields: { userId: "accountId" } } },
  });
  const [hook] = plugin.hooks.after;
  const begins = new Set(["/sign-in/email", "/callback/:id"]);
  return {
    ...plugin,
    hooks: {
      after: hook ? [{ ...hook, matcher: ({ path }: { path?: string }) => begins.has(path ?? "") }] : [],
    },
  };
}

/** null: none is written, or not for an account. */
function passwordIn(model: string, values: object): string | null {
  const { password } = values as { password?: unknown };
  return model === "account" && typeof password === "string" ? password : null;
}

const idKinds: Record<string, "account" | "session" | "identity"> = {
  user: "account",
  session: "session",
  account: "identity",
};

type Condition = { field: string; value: unknown };
type InTransaction = Omit<DBAdapter, "transaction">;

const wrapped =
  (
    make: (options: BetterAuthOptions) => DBAdapter,
    wrap: <Adapter extends InTransaction>(adapter: Adapter) => Adapter,
  ) =>
  (options: BetterAuthOptions) => {
    const adapter = make(options);
    return {
      ...wrap(adapter),
      transaction: <R>(work: (inside: InTransaction) => Promise<R>) =>
        adapter.transaction((inside) => work(wrap(inside))),
    };
  };

/** No other table has a field of that name. */
const isToken = ({ field }: Condition): boolean => field === "token";

const hidden = <Input extends { where?: Condition[] | undefined }>(input: Input): Input =>
  input.where
    ? {
        ...input,
        where: input.where.map((one) =>
          isToken(one) ? { ...one, value: sha256Hex(String(one.value)) } : one,
        ),
      }
    : input;

/** Callers that look up by the token get the token back instead of its hash. */
const shown = (row: unknown, { where }: { where: Condition[] }) => {
  const asked = where.find(isToken)?.value;
  return (row && typeof asked === "string" ? { ...row, token: asked } : row) as never;
};

/** better-auth stores session tokens in plain text; hashing them makes a leaked table useless. */
function hashingTokens<Adapter extends InTransaction>(adapter: Adapter): Adapter {
  return {
    ...adapter,
    create: async (input) => {
      if (input.model !== "session") return adapter.create(input);
      const { token } = input.data as unknown as { token: string };
      const row = await adapter.create({ ...input, data: { ...input.data, token: sha256Hex(token) } });
      return { ...row, token } as never;
    },
    findOne: async (input) => shown(await adapter.findOne(hidden(input)), input),
    update: async (input) => shown(await adapter.update(hidden(input)), input),
    consumeOne: async (input) => shown(await adapter.consumeOne(hidden(input)), input),
    findMany: (input) => adapter.findMany(hidden(input)),
    updateMany: (input) => adapter.updateMany(hidden(input)),
    delete: (input) => adapter.delete(hidden(input)),
    deleteMany: (input) => adapter.deleteMany(hidden(input)),
  };
}
