import type { Child } from "hono/jsx";
import { Layout } from "./kit/layout.tsx";

/** State that the forms for signed-out people show again. */
export type Entry = {
  name: string;
  email: string;
  /** Why the last attempt failed. */
  refusal: string | null;
  /** Confirmation of the last successful action. */
  notice: string | null;
  /** The path to continue with after signing in. */
  next: string;
  offers: { signUp: boolean; gitHub: boolean; reset: boolean };
};

const Refusal = ({ text }: { text: string | null }) =>
  text === null ? null : (
    <p class="callout bad" role="alert">
      {text}
    </p>
  );

const Next = ({ path }: { path: string }) =>
  path === "/" ? null : <input type="hidden" name="next" value={path} />;

const Email = ({ value }: { value: string }) => (
  <label>
    Email
    <input name="email" type="email" autocomplete="username" required maxlength={254} value={value} />
  </label>
);

const ShowPassword = () => (
  <label class="check needs-script">
    <input type="checkbox" data-reveals="password" />
    Show the password
  </label>
);

const NewPassword = ({ label = "Password" }: { label?: string }) => (
  <>
    <label>
      {label}
      <input
        id="password"
        name="password"
        type="password"
        autocomplete="new-password"
        required
        minlength={12}
        maxlength={200}
      />
      <span class="hint">At least 12 characters.</span>
    </label>
    <ShowPassword />
  </>
);

const on = (path: string, next: string) => (next === "/" ? path : `${path}?next=${encodeURIComponent(next)}`);

export const SignInPage = ({ email, refusal, notice, next, offers }: Entry) => (
  <Layout signedIn={false} title="Sign in">
    <h1>Sign in</h1>
    {notice !== null && (
      <p class="callout good" role="status">
        {notice}
      </p>
    )}
    <Refusal text={refusal} />
    <form method="post" action="/sign-in">
      <Next path={next} />
      <Email value={email} />
      <label>
        Password
        <input
          id="password"
          name="password"
          type="password"
          autocomplete="current-password"
          required
          maxlength={200}
        />
      </label>
      <ShowPassword />
      <button class="primary" type="submit">
        Sign in
      </button>
    </form>
    {offers.gitHub && (
      <form method="post" action="/sign-in/github">
        <Next path={next} />
        <button type="submit">Sign in with GitHub</button>
      </form>
    )}
    <p class="links">
      {offers.signUp && <a href={on("/sign-up", next)}>Create an account</a>}
      {offers.reset && <a href="/forgot-password">Forgot your password?</a>}
    </p>
  </Layout>
);

export const SecondStepPage = ({ next, refusal }: Pick<Entry, "next" | "refusal">) => (
  <Layout signedIn={false} title="Second step">
    <h1>Second step</h1>
    <Refusal text={refusal} />
    <form method="post" action="/sign-in/second-step">
      <Next path={next} />
      <label>
        Code
        <input
          name="code"
          autocomplete="one-time-code"
          autocapitalize="none"
          spellcheck={false}
          required
          autofocus
          maxlength={100}
        />
        <span class="hint">
          The six digits that your authenticator app shows now. Without the app: one of your recovery codes.
        </span>
      </label>
      <button class="primary" type="submit">
        Sign in
      </button>
    </form>
    <p class="links">
      <a href={on("/sign-in", next)}>Start again</a>
    </p>
  </Layout>
);

export const SignUpPage = ({ name, email, refusal, next }: Entry) => (
  <Layout signedIn={false} title="Create an account">
    <h1>Create an account</h1>
    <Refusal text={refusal} />
    <form method="post" action="/sign-up">
      <Next path={next} />
      <label>
        Name
        <input name="name" autocomplete="name" required maxlength={100} value={name} />
      </label>
      <Email value={email} />
      <NewPassword />
      <button class="primary" type="submit">
        Create account
      </button>
    </form>
    <p class="links">
      <a href={on("/sign-in", next)}>I already have an account</a>
    </p>
  </Layout>
);

/** Also shown for an address that already has an account, whose owner is notified by email. */
export const SignedUpPage = ({ email, next }: { email: string; next: string }) => (
  <Layout signedIn={false} title="Check your email">
    <h1>Check your email</h1>
    <p class="callout busy" role="status">
      We sent a link to <strong>{email}</strong>: open it to confirm that the address is yours, then sign in.
      The link is valid for one hour.
    </p>
    <p class="links">
      <a href={on("/sign-in", next)}>Sign in</a>
    </p>
  </Layout>
);

export const ForgotPasswordPage = ({ sent }: { sent: boolean }) => (
  <Layout signedIn={false} title="Forgot your password?">
    <h1>Forgot your password?</h1>
    {sent ? (
      <p class="callout busy" role="status">
        If an account with this address exists, we have sent a link to it. The link is valid for one hour.
      </p>
    ) : (
      <form method="post" action="/forgot-password">
        <Email value="" />
        <button class="primary" type="submit">
          Send me a link
        </button>
      </form>
    )}
    <p class="links">
      <a href="/sign-in">Back to sign-in</a>
    </p>
  </Layout>
);

export const ResetPasswordPage = ({ token, refusal }: { token: string; refusal: string | null }) => (
  <Layout signedIn={false} title="Choose a new password">
    <h1>Choose a new password</h1>
    <Refusal text={refusal} />
    <form method="post" action="/reset-password">
      <input type="hidden" name="token" value={token} />
      <NewPassword label="New password" />
      <label class="check">
        <input type="checkbox" name="revokeKeys" value="yes" checked />
        Revoke all API keys as well
      </label>
      <p class="soft">
        All browsers will be signed out. Keep the keys only if nobody else knew the old password.
      </p>
      <button class="primary" type="submit">
        Save password
      </button>
    </form>
  </Layout>
);

export const MessagePage = ({ title, children }: { title: string; children: Child }) => (
  <Layout signedIn={false} title={title}>
    <h1>{title}</h1>
    <p>{children}</p>
  </Layout>
);
