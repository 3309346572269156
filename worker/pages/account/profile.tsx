import * as z from "zod";
import type { OwnAccount } from "../../../protocol/api/accounts.ts";
import { AccountDelete, ProfilePatch, type AccountDeletion } from "../../../protocol/api/self-service.ts";
import { call } from "../../api/call.ts";
import { AppError, invalid } from "../../domain/app-error.ts";
import { parsed } from "../../domain/parsed.ts";
import { Check, ConfirmByName, Field, Form, Submit } from "../kit/form.tsx";
import { Card, Day, Heading, Tabs } from "../kit/parts.tsx";
import type { Screen } from "../kit/screen.ts";
import { counted } from "../kit/words.ts";
import { CodeField } from "./code-field.tsx";
import { accountTabs } from "./tabs.ts";

const PasswordForm = z.object({ current: z.string(), password: z.string() });
const EmailForm = z.object({
  email: z.email("an address such as ada@example.com").max(254),
  code: z.string().max(100).optional(),
});

const Deletion = ({
  viewer: { email, twoFactorEnabled },
  deletion,
}: {
  viewer: Pick<OwnAccount, "email" | "twoFactorEnabled">;
  deletion: AccountDeletion;
}) =>
  deletion.obstacles.length > 0 ? (
    <details class="fold">
      <summary class="bad">Delete this account</summary>
      <p>The account cannot be deleted yet:</p>
      <ul>
        {deletion.obstacles.map(({ reason }) => (
          <li>{reason}</li>
        ))}
      </ul>
    </details>
  ) : (
    <ConfirmByName
      id="delete"
      summary="Delete this account"
      name={email}
      label="Delete the account for good"
      fields={
        <>
          {deletion.credits > 0 && (
            <Check
              name="loseCredits"
              label={`Lose ${counted(deletion.credits, "credit", "credits")} with the account`}
            />
          )}
          {twoFactorEnabled && <CodeField />}
        </>
      }
    >
      <p>
        Your name, address, password, keys, notifications and conversations are deleted, and every browser is
        signed out.{" "}
        {deletion.backups > 0 &&
          `So ${deletion.backups === 1 ? "is" : "are"} ${counted(deletion.backups, "backup", "backups")} of databases that you have deleted. `}
        Invoices and payments are kept, with the buyer named on them. This cannot be undone.
      </p>
    </ConfirmByName>
  );

export const profile: Screen = {
  path: "/account",
  async show({ ctx, viewer }) {
    const deletion = await call(ctx, "getAccountDeletion", {});
    return {
      title: "Settings",
      section: "settings",
      body: (
        <>
          <Heading title="Settings" />
          <Tabs label="Settings" tabs={accountTabs} current="/account" />
          <div class="halves">
            <Card title="Profile">
              <div class="body">
                <Form id="name">
                  <Field
                    name="name"
                    prose
                    label="Name"
                    value={viewer.name}
                    autocomplete="name"
                    required
                    maxlength={100}
                  />
                  <Submit label="Save name" />
                </Form>
                <Form id="email">
                  <Field
                    name="email"
                    label="Email"
                    type="email"
                    value={viewer.email}
                    autocomplete="email"
                    required
                    maxlength={254}
                    hint={
                      viewer.emailVerified
                        ? "A change is confirmed by mail: first at this address, then at the new one."
                        : "Not confirmed yet. A change is confirmed by a mail to the new address."
                    }
                  />
                  {viewer.twoFactorEnabled && <CodeField />}
                  <Submit label="Change email" />
                </Form>
                <p class="soft">
                  Member since <Day at={viewer.createdAt} />
                </p>
              </div>
            </Card>
            <Card title="Password">
              <div class="body">
                <Form id="password">
                  <Field
                    name="current"
                    label="Current password"
                    type="password"
                    autocomplete="current-password"
                    required
                    maxlength={200}
                  />
                  <Field
                    name="password"
                    label="New password"
                    type="password"
                    autocomplete="new-password"
                    required
                    minlength={12}
                    maxlength={200}
                    hint="At least 12 characters. All other browsers are signed out."
                  />
                  <Submit label="Change password" />
                </Form>
              </div>
            </Card>
            <Card title="Your data">
              <div class="body">
                <p>Everything in the account, as one JSON file, without secrets, logs and backup files.</p>
                <p>
                  <a class="button" href="/api/v1/account/export" download>
                    Export all data
                  </a>
                </p>
                <Deletion viewer={viewer} deletion={deletion} />
              </div>
            </Card>
          </div>
        </>
      ),
    };
  },
  forms: {
    async name({ ctx }, fields) {
      await call(ctx, "patchAccountProfile", fields.read(ProfilePatch));
      return { to: "/account", said: "Your name is changed." };
    },
    async email({ viewer, toAuth }, fields) {
      const { email, code = "" } = fields.read(EmailForm);
      if (email.toLowerCase() === viewer.email) throw invalid("email", "is your address already");
      const answer = await toAuth("/change-email", { newEmail: email, code });
      if (answer.status === 429) throw new AppError("rate_limited");
      if (!answer.ok)
        throw invalid(
          "email",
          "was not changed: this installation sends no mail, or does not accept this address",
        );
      return {
        to: "/account",
        said: viewer.emailVerified
          ? `We sent a link to ${viewer.email}. Open it to confirm; a link to ${email} follows, which must be opened too.`
          : `We sent a link to ${email}. The address changes when it is opened.`,
      };
    },
    async delete({ ctx, viewer, toAuth }, fields) {
      const email = fields.text("confirm").trim();
      if (email.toLowerCase() !== viewer.email) throw invalid("confirm", `Type ${viewer.email}`);
      const loseCredits = fields.text("loseCredits") === "true";
      await call(
        ctx,
        "deleteAccount",
        parsed(AccountDelete, { email, loseCredits, code: fields.text("code") }),
      );
      // The session is gone already; this removes its cookie.
      await toAuth("/sign-out", {});
      return { to: "/sign-in", said: "The account is deleted." };
    },
    async password({ toAuth }, fields) {
      const { current, password } = fields.read(PasswordForm);
      if (password.length < 12) throw invalid("password", "must have at least 12 characters");
      const answer = await toAuth("/change-password", {
        currentPassword: current,
        newPassword: password,
      });
      if (answer.status === 429) throw new AppError("rate_limited");
      if (!answer.ok) throw invalid("current", "This is not your current password");
      return { to: "/account", said: "The password is changed. All other browsers are signed out." };
    },
  },
};
