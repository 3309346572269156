import * as z from "zod";
import { AppError, invalid } from "../../domain/app-error.ts";
import { codeIn } from "../../services/accounts/second-factor.ts";
import { brandName } from "../kit/brand.tsx";
import { Field, Form, Submit } from "../kit/form.tsx";
import { Card, Copied, Heading, Status, Tabs } from "../kit/parts.tsx";
import { QrCode } from "../kit/qr.tsx";
import type { Asked, Screen, View } from "../kit/screen.ts";
import { CodeField } from "./code-field.tsx";
import { accountTabs } from "./tabs.ts";

const path = "/account/two-factor";

const PasswordForm = z.object({ password: z.string().max(1000).default("") });
const ProvenForm = PasswordForm.extend({ code: z.string().max(100).default("") });
/** What better-auth's `enable` answers, which the page keeps until the first code has proven the app. */
const Setup = z.object({ uri: z.string().max(1000), codes: z.string().max(1000) });
const Enabled = z.object({ totpURI: z.string(), backupCodes: z.array(z.string()) });
const Codes = z.object({ backupCodes: z.array(z.string()) });

const view = (body: View["body"]): View => ({
  title: "Two-step sign-in",
  section: "settings",
  crumbs: [{ label: "Settings", href: "/account" }],
  body: (
    <>
      <Heading title="Settings" />
      <Tabs label="Settings" tabs={accountTabs} current={path} />
      {body}
    </>
  ),
});

const Password = () => (
  <Field
    name="password"
    label="Your password"
    type="password"
    autocomplete="current-password"
    required
    maxlength={200}
  />
);

const secretOf = (uri: string): string =>
  URL.canParse(uri) ? (new URL(uri).searchParams.get("secret") ?? "") : "";

const setup = ({ uri, codes }: z.infer<typeof Setup>): View =>
  view(
    <Card title="Set up your app">
      <div class="body">
        <ol class="steps">
          <li>
            Scan this with an authenticator app, such as Aegis, Google Authenticator, 1Password or Bitwarden.
            <QrCode text={uri} label="QR code for your authenticator app" />
            <details class="fold">
              <summary>Type it instead</summary>
              <Copied text={(secretOf(uri).match(/.{1,4}/g) ?? []).join(" ")} of="the secret" />
            </details>
          </li>
          <li>
            Type the code that the app shows now. It proves that the app is set up; until then nothing
            changes.
            <Form id="confirm">
              <input type="hidden" name="uri" value={uri} />
              <input type="hidden" name="codes" value={codes} />
              <Field
                name="code"
                label="Code"
                required
                maxlength={20}
                autocomplete="one-time-code"
                mono
                placeholder="123456"
              />
              <Submit label="Turn on" kind="primary" />
            </Form>
          </li>
        </ol>
      </div>
    </Card>,
  );

const Off = () => (
  <Card title="Two-step sign-in" end={<Status tone="soft" label="Off" />}>
    <div class="body">
      <Form id="begin">
        <p>
          With it, signing in requires your password and a code from an app on your phone, so a stolen
          password is not enough. API keys work as before.
        </p>
        <Password />
        <Submit label="Set up" kind="primary" />
      </Form>
      <p class="soft small">
        If you sign in only with GitHub, set a password first: sign out, and choose "Forgot your password?".
      </p>
    </div>
  </Card>
);

const On = () => (
  <>
    <Card title="Two-step sign-in" end={<Status tone="good" label="On" />}>
      <div class="body">
        <p>
          Signing in, authorizing a device or program, creating an API key, changing your email address and
          deleting the account require a code from your authenticator app, or one of your recovery codes, each
          of which works once.
        </p>
      </div>
    </Card>
    <Card title="New recovery codes">
      <div class="body">
        <Form id="codes">
          <p>The old ones stop working. The new ones are shown once.</p>
          <Password />
          <CodeField />
          <Submit label="Make new codes" />
        </Form>
      </div>
    </Card>
    <Card title="Turn off">
      <div class="body">
        <Form id="off">
          <p>
            You sign in with your password alone again. The app's entry and the recovery codes stop working.
          </p>
          <Password />
          <CodeField />
          <Submit label="Turn off" kind="danger" />
        </Form>
      </div>
    </Card>
  </>
);

/** What better-auth answers to a request with the password. @throws AppError */
async function byPassword(
  { toAuth }: Asked,
  action: "enable" | "disable" | "generate-backup-codes",
  fields: object,
): Promise<unknown> {
  const answer = await toAuth(`/two-factor/${action}`, { ...fields });
  if (answer.status === 429) throw new AppError("rate_limited");
  if (!answer.ok) throw invalid("password", "This is not your current password");
  return answer.json();
}

const kept =
  "Keep these recovery codes where you keep passwords: each signs you in once without the app. They are not shown again.";

export const twoFactor: Screen = {
  path,
  // oxlint-disable-next-line require-await
  async show({ viewer }) {
    return view(<div class="halves">{viewer.twoFactorEnabled ? <On /> : <Off />}</div>);
  },
  forms: {
    async begin(asked, fields) {
      const answer = Enabled.parse(
        await byPassword(asked, "enable", { ...fields.read(PasswordForm), issuer: brandName() }),
      );
      return { again: setup({ uri: answer.totpURI, codes: answer.backupCodes.join(" ") }) };
    },
    async confirm({ toAuth }, fields) {
      const sent = fields.read(Setup);
      const answer = await toAuth("/two-factor/verify-totp", { code: codeIn(fields.text("code")) });
      if (answer.status === 429) throw new AppError("rate_limited");
      if (!answer.ok)
        return {
          again: setup(sent),
          problems: {
            code: "This code is wrong. Type the newest one, and check that your phone's clock is right.",
          },
        };
      return { to: path, said: `Two-step sign-in is on. ${kept}`, secret: sent.codes };
    },
    async codes(asked, fields) {
      const answer = await byPassword(asked, "generate-backup-codes", fields.read(ProvenForm));
      return {
        to: path,
        said: `The old recovery codes stopped working. ${kept}`,
        secret: Codes.parse(answer).backupCodes.join(" "),
      };
    },
    async off(asked, fields) {
      await byPassword(asked, "disable", fields.read(ProvenForm));
      return { to: path, said: "Two-step sign-in is off." };
    },
  },
};
