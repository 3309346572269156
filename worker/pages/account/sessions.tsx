import type { Session } from "../../../protocol/api/self-service.ts";
import { call } from "../../api/call.ts";
import { browserAndSystem } from "../kit/browser-name.ts";
import { Act } from "../kit/form.tsx";
import { cursorIn } from "../kit/paging.ts";
import { Card, Day, Heading, Pager, Tabs } from "../kit/parts.tsx";
import type { Screen } from "../kit/screen.ts";
import { accountTabs } from "./tabs.ts";

const path = "/account/sessions";

const Row = ({ session }: { session: Session }) => (
  <tr>
    <td>
      {session.current && <strong>This browser</strong>}
      <div class={session.current ? "soft small" : ""}>{browserAndSystem(session.userAgent)}</div>
      <div class="soft small">from {session.ipAddress ?? "an unknown address"}</div>
    </td>
    <td class="soft">
      signed in <Day at={session.createdAt} />
      <br />
      last used <Day at={session.lastUsedAt} />
    </td>
    <td class="end">
      {!session.current && (
        <Act
          id="end"
          of={session.id}
          label="Sign out"
          about={browserAndSystem(session.userAgent)}
          kind="danger"
          values={{ id: session.id }}
        />
      )}
    </td>
  </tr>
);

export const sessions: Screen = {
  path,
  async show({ ctx, query }) {
    const { data, nextCursor } = await call(ctx, "listSessions", {
      limit: 100,
      ...cursorIn(query, "session"),
    });
    return {
      title: "Browsers",
      section: "settings",
      crumbs: [{ label: "Settings", href: "/account" }],
      body: (
        <>
          <Heading title="Settings" />
          <Tabs label="Settings" tabs={accountTabs} current={path} />
          <Card
            title="Signed-in browsers"
            id="sessions"
            end={data.some(({ current }) => !current) && <Act id="others" label="Sign out all others" />}
          >
            <table class="roomy">
              {data.map((session) => (
                <Row session={session} />
              ))}
            </table>
          </Card>
          <Pager path={path} next={nextCursor} label="Older browsers" />
        </>
      ),
    };
  },
  forms: {
    async end({ ctx }, fields) {
      await call(ctx, "revokeSession", { id: fields.text("id") });
      return { to: path, said: "The browser is signed out." };
    },
    async others({ ctx }) {
      const { revoked } = await call(ctx, "revokeOtherSessions", {});
      return {
        to: path,
        said: revoked === 1 ? "One browser is signed out." : `${revoked} browsers are signed out.`,
      };
    },
  },
};
