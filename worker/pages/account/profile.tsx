import * as z from "zod";
import { Button, Field, Form } from "../kit/form.tsx";
import { Card, Day, Heading, Tabs } from "../kit/parts.tsx";
import { AppError, invalid } from "../../domain/app-error.ts";
import type { Screen } from "../kit/screen.ts";
import { accountTabs } from "./tabs.ts";

const PasswordForm = z.object({ current: z.string(), password: z.string() });

export const profile: Screen = {
  path: "/account",
  async show({ viewer }) {
    return {
      title: "Settings",
      section: "settings",
      body: (
        <>
          <Heading title="Settings" />
          <Tabs label="Settings" tabs={accountTabs} current="/account" />
          <div class="halves">
            <Card title="Profile">
              <dl>
                <dt>Name</dt>
                <dd>{viewer.name}</dd>
                <dt>Email</dt>
                <dd>
                  {viewer.email} {!viewer.emailVerified && <span class="warn">not confirmed</span>}
                </dd>
                <dt>Since</dt>
                <dd>
                  <Day at={viewer.createdAt} />
                </dd>
              </dl>
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
                  <p class="form-end">
                    <Button label="Change password" />
                  </p>
                </Form>
              </div>
            </Card>
          </div>
        </>
      ),
    };
  },
  forms: {
    async password({ toAuth }, fields) {
      const { current, password } = fields.read(PasswordForm);
      if (password.length < 12) throw invalid("password", "must have at least 12 characters");
      const answer = await toAuth("/change-password", {
        currentPassword: current,
        newPassword: password,
        revokeOtherSessions: true,
      });
      if (answer.status === 429) throw new AppError("rate_limited");
      if (!answer.ok) throw invalid("current", "is not your current password");
      return { to: "/account", said: "The password is changed. All other browsers are signed out." };
    },
  },
};
